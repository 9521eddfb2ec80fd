"""Places where models live: an address, credentials and an envelope each. What they speak is a dialect's business."""
