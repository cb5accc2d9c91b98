"""The files of a vault: paths, scopes, config, edit plans, and the one way in which a plan is applied."""
