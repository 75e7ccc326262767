"""Whether two runs are equal: digests of state, and the trace of events that a run leaves."""
