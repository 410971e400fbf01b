//! The end of a check: the findings that need all bodies. They are computed from the summaries of all files after every edit,
//! also from those of files that are not checked again.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_host::{Text, TypeShape};
use weir_syntax::ast::ItemKind;

use super::{ExhaustivenessCheck, TypeChecker, recursion};
use crate::effects::{self, EffectSummary};
use crate::typed_tree::{FileSummary, TypedTree};
use crate::{exhaustiveness, integer_division};

impl TypeChecker<'_, '_> {
    /// Ends the check of the bodies so far: their types are known now.
    pub(super) fn end_bodies(&mut self) {
        self.begin_body(super::Exits::Start);
        self.resolve_all();
        self.unknown_types();
        self.exhaustiveness();
    }

    /// Checks the program, when the files have been checked.
    pub(super) fn finish(mut self) -> TypedTree {
        self.summarize_declarations();
        self.typed.declarations.file = 0;
        self.generic_uses();
        self.session_resources();
        let files = self.typed.files.clone();
        let calls = files.iter().flat_map(|file| &file.summary.fn_calls);
        recursion::report(calls, &self.typed.declarations, self.context);
        self.effects(files.iter().map(|file| &file.summary));
        self.typed
    }

    fn resolve_all(&mut self) {
        let inference = &self.inference;
        for file in self.typed.files.iter_mut().filter_map(Arc::get_mut) {
            file.resolve_types(inference);
        }
        if self.declares {
            for shared in self.typed.declarations.shared.values_mut() {
                shared.ty = inference.resolve(&shared.ty);
            }
        }
    }

    /// Checks that the patterns of each `match` cover every value.
    fn exhaustiveness(&mut self) {
        for check in std::mem::take(&mut self.matches) {
            let before = self.context.reported();
            let span = match check {
                ExhaustivenessCheck::Match(value, arms) => {
                    exhaustiveness::check_match(self.context, &self.typed, value, arms);
                    value.span
                }
                ExhaustivenessCheck::Irrefutable(pattern) => {
                    exhaustiveness::check_irrefutable(self.context, &self.typed, pattern);
                    pattern.span
                }
            };
            if self.context.reported() > before {
                let file = self.typed.declarations.file_at(span.start);
                self.typed.file_mut(file).is_clean = false;
            }
        }
    }

    pub(super) fn hidden_divisions(&mut self) {
        for file in (0..self.typed.files.len()).filter(|file| !self.kept.contains(file)) {
            let found = integer_division::check(self.context, &self.typed, file);
            self.typed.file_mut(file).hidden_divisions = found;
        }
    }

    /// Adds to the summaries of the checked files what the check found out about their declarations.
    fn summarize_declarations(&mut self) {
        for item in &self.context.tree().items {
            let file = usize::from(item.file);
            if self.is_kept(file) {
                continue;
            }
            let declarations = &self.typed.declarations;
            let scope = &declarations.files[file];
            match &item.kind {
                ItemKind::Constant(constant) => {
                    let found = declarations.constants.get_key_value(scope.whole(constant.name.as_str()));
                    let found = found.map(|(name, it)| (name.clone(), it.ty.clone(), it.value.clone()));
                    self.typed.file_mut(file).summary.constants.extend(found);
                }
                ItemKind::Shared(shared) => {
                    let found = declarations.shared.get_key_value(scope.whole(shared.name.as_str()));
                    let found = found.map(|(name, it)| (name.clone(), it.ty.clone()));
                    self.typed.file_mut(file).summary.shared.extend(found);
                }
                ItemKind::Record(record) => {
                    let name = Text::from(scope.whole(record.name.as_str()));
                    let shape = declarations.types.get(&name).map(|declared| &declared.definition.shape);
                    let Some(TypeShape::Record(fields)) = shape else { continue };
                    let defaults =
                        fields.iter().filter_map(|it| Some((name.clone(), it.name.clone(), it.default.clone()?)));
                    let defaults: Vec<_> = defaults.collect();
                    self.typed.file_mut(file).summary.defaults.extend(defaults);
                }
                _ => {}
            }
        }
        for (at, scope) in self.typed.declarations.files.iter().enumerate() {
            let used = scope.modules.iter().filter(|(_, module)| module.used).map(|(name, _)| name.clone());
            if let Some(file) = self.typed.files.get_mut(at).and_then(Arc::get_mut) {
                file.summary.used_modules = used.collect();
            }
        }
    }

    /// Declares again what an earlier check found out about the declarations of files that are not checked again.
    pub(super) fn restore_declarations(&mut self) {
        for at in 0..self.typed.files.len() {
            if !self.is_kept(at) {
                continue;
            }
            let (file, declarations) = (&self.typed.files[at], &mut self.typed.declarations);
            for (name, ty, value) in &file.summary.constants {
                if let Some(declared) = declarations.constants.get_mut(name) {
                    (declared.ty, declared.value) = (ty.clone(), value.clone());
                }
            }
            for (name, ty) in &file.summary.shared {
                if let Some(declared) = declarations.shared.get_mut(name) {
                    declared.ty = ty.clone();
                }
            }
            for (record, field, value) in &file.summary.defaults {
                if let Some(TypeShape::Record(fields)) =
                    declarations.types.get_mut(record).map(|declared| &mut declared.definition.shape)
                    && let Some(known) = fields.iter_mut().find(|known| known.name == *field)
                {
                    known.default = Some(value.clone());
                }
            }
            for name in &file.summary.used_modules {
                if let Some(module) = declarations.files[at].modules.get_mut(name) {
                    module.used = true;
                }
            }
        }
    }

    /// Computes the effects of all `fn`s, with those of their callees.
    fn effects<'s>(&mut self, summaries: impl Iterator<Item = &'s FileSummary> + Clone) {
        let TypedTree { declarations, fn_callees, fn_effects, flow_callees, bound_constraints, .. } = &mut self.typed;
        let none = EffectSummary::default();
        let index = |name: &Arc<str>| declarations.functions.get_index_of(name);
        let mut own = vec![&none; declarations.functions.len()];
        *fn_callees = vec![BTreeSet::new(); own.len()];
        for summary in summaries.clone() {
            for (name, body) in &summary.fn_effects {
                let Some(at) = index(name) else { continue };
                own[at] = &body.own;
                fn_callees[at] = body.callees.iter().filter_map(index).collect();
            }
            flow_callees.extend(summary.flow_callees.iter().filter_map(index));
            for bound in &summary.bound {
                let of = bound_constraints.of(bound.function.clone());
                of.entry(bound.constraint.clone()).or_insert(bound.mode);
            }
        }
        *fn_effects = effects::close(&own, fn_callees);
    }
}
