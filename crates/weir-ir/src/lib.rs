//! The expression IR, the graph and the plan; their printers, parsers and verifiers; the reference evaluator.
