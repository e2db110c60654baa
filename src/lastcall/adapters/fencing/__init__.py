"""What switches machines off: ``ports.Fence`` on real devices."""
