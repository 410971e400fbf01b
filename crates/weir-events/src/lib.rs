//! Events: composable communication, synchronous and asynchronous, for threads and tasks.
