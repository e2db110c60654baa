"""What switches machines off: ``ports_fences.Fence`` on real devices."""
