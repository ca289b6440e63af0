"""Images that are blurred, swirled or noisy, seen through a frozen network."""
