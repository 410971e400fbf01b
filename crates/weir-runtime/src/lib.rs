//! Makes a graph under a plan live: frames, sections, engines and resources.
