"""How far the traffic of pods that leave has moved away from them, and what load balancers are told."""
