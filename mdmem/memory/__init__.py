"""The kinds of memory, and the façade that gathers them: what an application or a front end calls."""
