//! From the expression IR to the graph.
