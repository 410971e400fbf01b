//! Declarations that an edit of other files leaves valid: they are taken over from the last program whose declarations had no
//! errors (`check_cache`).

use std::ops::Range;

use weir_host::{TypeShape, Value};

use super::{Declarations, OwnDeclarations};
use crate::types::Ty;

impl Declarations {
    /// Returns where the declarations of a file begin that are added from now on.
    pub(crate) fn begin_file(&self) -> OwnDeclarations {
        OwnDeclarations {
            types: self.types.len()..0,
            aliases: self.aliases.len()..0,
            functions: self.functions.len()..0,
            shared: self.shared.len()..0,
            constants: self.constants.len()..0,
            constraints: self.constraints.len()..0,
        }
    }

    /// Notes the types of the current file, which were added since `begun`.
    pub(crate) fn end_types(&mut self, begun: &OwnDeclarations) {
        let types = begun.types.start..self.types.len();
        let aliases = begun.aliases.start..self.aliases.len();
        let own = &mut self.here_mut().own;
        (own.types, own.aliases) = (types, aliases);
    }

    /// Notes the values of the current file, which were added since `begun`.
    pub(crate) fn end_values(&mut self, begun: &OwnDeclarations) {
        let since = |begun: &Range<usize>, end: usize| begun.start..end;
        let own = &self.here().own;
        let own = OwnDeclarations {
            types: own.types.clone(),
            aliases: own.aliases.clone(),
            functions: since(&begun.functions, self.functions.len()),
            shared: since(&begun.shared, self.shared.len()),
            constants: since(&begun.constants, self.constants.len()),
            constraints: since(&begun.constraints, self.constraints.len()),
        };
        self.here_mut().own = own;
    }

    /// Declares the types of the current file as they were declared `before`, and the names of all its declarations.
    pub(crate) fn take_over_types(&mut self, before: &Declarations) {
        let shift = self.shift(before);
        let known = &before.files[self.file];
        for (name, declared) in &before.types.as_slice()[known.own.types.clone()] {
            let mut declared = declared.clone();
            if let TypeShape::Record(fields) = &mut declared.definition.shape {
                // The value is known when the default has been checked.
                fields.iter_mut().filter_map(|field| field.default.as_mut()).for_each(|it| *it = Value::Absent);
            }
            self.types.insert(name.clone(), declared);
        }
        for (name, declared) in &before.aliases.as_slice()[known.own.aliases.clone()] {
            let mut declared = declared.clone();
            declared.item = shift(declared.item);
            self.aliases.insert(name.clone(), declared);
        }
        let here = self.here_mut();
        here.names = known.names.clone();
        here.variants = known.variants.clone();
        here.references = known.references.clone();
    }

    /// Declares the values of the current file as they were declared `before`.
    pub(crate) fn take_over_values(&mut self, before: &Declarations) {
        let shift = self.shift(before);
        let own = &before.files[self.file].own;
        for (name, declared) in &before.functions.as_slice()[own.functions.clone()] {
            let mut declared = declared.clone();
            declared.item = shift(declared.item);
            self.functions.insert(name.clone(), declared);
        }
        for (name, declared) in &before.shared.as_slice()[own.shared.clone()] {
            let mut declared = declared.clone();
            (declared.item, declared.ty) = (shift(declared.item), Ty::Error);
            self.shared.insert(name.clone(), declared);
        }
        for (name, declared) in &before.constants.as_slice()[own.constants.clone()] {
            let mut declared = declared.clone();
            (declared.item, declared.ty, declared.value) = (shift(declared.item), Ty::Error, None);
            self.constants.insert(name.clone(), declared);
        }
        for (name, declared) in &before.constraints.as_slice()[own.constraints.clone()] {
            let mut declared = declared.clone();
            declared.item = shift(declared.item);
            self.constraints.insert(name.clone(), declared);
        }
    }

    /// Returns a function from the index that an item of the current file had before to the one that it has now.
    fn shift(&self, before: &Declarations) -> impl Fn(usize) -> usize + use<> {
        let (from, to) = (before.files[self.file].first_item, self.here().first_item);
        move |item| item - from + to
    }
}
