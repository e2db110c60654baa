"""lastcall's failover controller in a rehearsal: the unchanged program, and the BMCs by which it fences machines."""
