"""One module a stage: it reads artifacts, calls the room that knows how, writes artifacts and their records."""
