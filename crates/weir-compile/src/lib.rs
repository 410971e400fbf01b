//! From the tree to a verified graph: names, types, effects, lowering and passes.
