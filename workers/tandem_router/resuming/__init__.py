"""Going on with a stream whose decode worker was lost: on another worker, from the ids that exist, as the same stream."""
