"""What sessions leave: observations and summaries."""
