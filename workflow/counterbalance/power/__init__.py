"""Power by simulation before a study is frozen: the V that a design would show, and what it costs."""
