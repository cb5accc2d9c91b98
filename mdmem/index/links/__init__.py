"""What memories point at: resolved, followed, and kept right as things move."""
