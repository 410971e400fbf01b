//! The constants that constant expressions name: the order in which `const`s and the defaults of fields are checked.

use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::Text;
use weir_syntax::ast::{Expr, ExprKind, Item, ItemKind, Name, Path, Tree, Visitor, walk_expr};

use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::dependency_order::{DependencyOrder, dependencies_first};

/// A declaration with constant expressions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ConstantOwner {
    /// A `const`, by its index.
    Item(usize),
    /// The defaults of the fields of a record, by the index of its item in the tree.
    Defaults(usize),
}

/// The constant expressions of a program, and what their names mean.
pub(crate) struct ConstantUses<'a> {
    declarations: &'a Declarations,
    tree: &'a Tree,
    /// For each item of the tree, the index of its file.
    files: Vec<usize>,
    /// The indices of the records' items, by their names in the program.
    records: IndexMap<Text, usize>,
}

impl<'a> ConstantUses<'a> {
    pub(crate) fn of(declarations: &'a Declarations, context: &'a CheckContext<'_>) -> Self {
        let tree = context.tree();
        let files: Vec<usize> = tree.items.iter().map(|item| item.file.into()).collect();
        let record = |(at, item): (usize, &Arc<Item>)| match &item.kind {
            ItemKind::Record(record) => Some((declarations.files[files[at]].whole(record.name.as_str()).into(), at)),
            _ => None,
        };
        let records = tree.items.iter().enumerate().filter_map(record).collect();
        ConstantUses { declarations, tree, files, records }
    }

    /// Orders the constants: each follows those that it names.
    pub(crate) fn ordered(&self) -> DependencyOrder<ConstantOwner> {
        let defaults = self.tree.items.iter().enumerate();
        let defaults = defaults.filter(|(_, item)| matches!(item.kind, ItemKind::Record(_)));
        let defaults = defaults.map(|(at, _)| ConstantOwner::Defaults(at));
        let items = (0..self.declarations.constants.len()).map(ConstantOwner::Item);
        dependencies_first(defaults.chain(items), |constant| self.named_by(*constant))
    }

    /// Returns the constants that the expressions of a constant name.
    fn named_by(&self, constant: ConstantOwner) -> Vec<ConstantOwner> {
        let item = match constant {
            ConstantOwner::Item(at) => self.declarations.constants[at].item,
            ConstantOwner::Defaults(item) => item,
        };
        let mut named = NamedConstants { uses: self, file: self.files[item], found: Vec::new() };
        match &self.tree.items[item].kind {
            ItemKind::Constant(constant) => named.expr(&constant.value),
            ItemKind::Record(record) => {
                record.fields.iter().filter_map(|field| field.default.as_ref()).for_each(|default| named.expr(default));
            }
            _ => {}
        }
        named.found
    }
}

/// Collects the constants that an expression names.
struct NamedConstants<'u> {
    uses: &'u ConstantUses<'u>,
    /// The index of the file of the expression.
    file: usize,
    found: Vec<ConstantOwner>,
}

impl NamedConstants<'_> {
    fn constant(&mut self, names: Vec<Name>) {
        let Some(last) = names.last() else { return };
        let path = Path { span: last.span, names };
        let declarations = self.uses.declarations;
        let whole = declarations.name_in_program(self.file, &path);
        let at = whole.and_then(|whole| declarations.constants.get_index_of(whole.as_str()));
        self.found.extend(at.map(ConstantOwner::Item));
    }

    fn record(&mut self, path: &Path) {
        let declarations = self.uses.declarations;
        let Some(whole) = declarations.name_in_program(self.file, path) else { return };
        let meant = declarations.aliases.get(&whole).and_then(|alias| alias.ty.name());
        let item = self.uses.records.get(meant.unwrap_or(&whole));
        self.found.extend(item.map(|item| ConstantOwner::Defaults(*item)));
    }
}

impl<'a> Visitor<'a> for NamedConstants<'_> {
    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Name(name) => self.constant(vec![name.clone()]),
            ExprKind::Field { object, name } => {
                if let ExprKind::Name(module) = &object.kind {
                    self.constant(vec![module.clone(), name.clone()]);
                }
            }
            ExprKind::Record { path, .. } => self.record(path),
            _ => {}
        }
        walk_expr(self, expr);
    }
}
