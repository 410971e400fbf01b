//! Move-only values: finds the types whose values can only be moved (move-only types), and the parameters that a body
//! changes.

use std::collections::BTreeSet;

use weir_host::{Library, Text, Type, TypeDefinition, TypeShape};
use weir_ir::graph::{Graph, Operand};

use super::part::NodePart;

/// The types whose values can only be moved.
pub(super) struct MoveOnlyTypes<'a> {
    types: &'a [TypeDefinition],
    library: &'a Library,
}

impl<'a> MoveOnlyTypes<'a> {
    pub(super) fn new(types: &'a [TypeDefinition], library: &'a Library) -> Self {
        MoveOnlyTypes { types, library }
    }

    /// Returns true if values of this type are move-only, or may contain a move-only value.
    pub(super) fn may(&self, ty: &Type) -> bool {
        self.within(ty, &mut BTreeSet::new())
    }

    /// Returns true if the value of this input may have to be moved.
    pub(super) fn input(&self, graph: &Graph, source: &Operand) -> bool {
        let ty = match source {
            Operand::Port(id, port) => graph.node(*id).outputs.get(*port as usize),
            Operand::Parameter(index) => graph.parameters.get(*index as usize),
            Operand::Constant(_) | Operand::Shared(_) | Operand::Never => None,
        };
        ty.is_some_and(|ty| self.may(ty))
    }

    fn within(&self, ty: &Type, seen: &mut BTreeSet<Text>) -> bool {
        match ty {
            Type::List(inner) | Type::Option(inner) => self.within(inner, seen),
            Type::Map(pair) | Type::Result(pair) => self.within(&pair.0, seen) || self.within(&pair.1, seen),
            Type::Tuple(parts) => parts.iter().any(|part| self.within(part, seen)),
            Type::Named(name) => seen.insert(name.clone()) && self.named(name, seen),
            Type::Parameter(_) => true,
            _ => false,
        }
    }

    fn named(&self, name: &str, seen: &mut BTreeSet<Text>) -> bool {
        let own = self.types.iter().find(|definition| definition.name.as_str() == name);
        match own.or_else(|| self.library.definition(name)).map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => fields.iter().any(|field| self.within(&field.ty, seen)),
            Some(TypeShape::Enum(variants)) => {
                variants.iter().flat_map(|variant| &variant.fields).any(|field| self.within(&field.ty, seen))
            }
            Some(TypeShape::Opaque { shareable }) => !shareable,
            // An unknown type is assumed to be move-only.
            None => true,
        }
    }
}

/// Returns, for each parameter of the graph, true if a call in it takes the parameter by `&mut`.
pub(super) fn changed_parameters(graph: &Graph, parts: &[NodePart]) -> Vec<bool> {
    let mut changed = vec![false; graph.parameters.len()];
    for (node, part) in graph.nodes.iter().zip(parts) {
        for (input, source) in node.inputs.iter().enumerate() {
            if let Operand::Parameter(index) = source
                && part.changes(node, input)
            {
                changed[*index as usize] = true;
            }
        }
    }
    changed
}
