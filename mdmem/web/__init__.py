"""The page: what agents changed, to be decided in a browser of this machine; and what there is."""
