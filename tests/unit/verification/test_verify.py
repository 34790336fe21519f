from counterbalance.stages.verify import verify


def test_v(project):
    print(verify(project.results))
