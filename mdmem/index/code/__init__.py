"""What memories cite: files, symbols and lines of the workspace, and how they have changed."""
