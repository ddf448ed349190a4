"""How policies size a pool under recorded arrivals: replica-hours against requests that come too late."""
