//! Lowers tests: each is a flow without an answer, which a failed expectation ends with a failure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use weir_host::{Parameter, Type, Value};
use weir_ir::expr::{Atom, Block as IrBlock, Op, Program};
use weir_ir::prim::Prim;
use weir_ir::program::{Entry, Flow};
use weir_syntax::Span;
use weir_syntax::ast::{BinaryOperator, Block, Expr, ExprKind, ItemKind, Replacement, Test};

use super::{Binding, Callable, Lowering, failures, lower_flow};
use crate::context::CheckContext;
use crate::kept_flows::{FlowLowering, FlowParts};
use crate::typed_tree::{CallTarget, TypedTree};

/// Lowers the tests of a file: a program with one flow for each, in source order, whose entry point has no source.
pub(crate) fn lower_tests<'a>(
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
    program: &Program,
    flows: &mut FlowLowering<'_, 'a>,
) -> Program {
    let tree = context.tree();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    let tests = tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Test(test) => Some((item, test)),
        _ => None,
    });
    let flows = tests.map(|(item, test)| {
        let parts = FlowParts { file: item.file.into(), spans: vec![item.span] };
        let flow = flows.flow(("test", parts), context, typed, |context| {
            lower_flow(context, typed, |lowering| lowering.test_flow(test))
        });
        // Tests of different modules may have one name.
        let same = named.entry(&test.name).or_default();
        *same += 1;
        Flow { name: if *same == 1 { flow.name } else { format!("{}#{same}", test.name).into() }, ..flow }
    });
    let flows: Vec<_> = flows.collect();
    let mut lowering = Lowering::new(context, typed);
    let none = Type::Tuple(Vec::new().into());
    let arguments =
        lowering.whole(&none, |lowering| lowering.prim(Prim::Record, Vec::new(), none.clone(), Span::default()));
    let entry = Entry { name: "tests".into(), source: "".into(), arguments, ordered: false, flows };
    let inlined_calls = context.inlined_calls.clone();
    Program { types: program.types.clone(), inlined_calls, shared: program.shared.clone(), entries: vec![entry] }
}

impl<'a> Lowering<'a, '_> {
    fn test_flow(&mut self, test: &'a Test) -> Flow<IrBlock> {
        // Each test is a session of its own.
        self.session = Some(Atom::Value(Value::Unit));
        // A handler of the file answers for a service; in a test it would hide what fails.
        let handlers = failures::handlers_of(&test.body).collect();
        let body = self.flow(&Type::Unit, handlers, |lowering| {
            lowering.block(&test.body);
            Atom::Value(Value::Unit)
        });
        let name = (&*test.name).into();
        Flow { name, route: None, parameters: Vec::new(), result: Type::Unit, body, former_sites: Vec::new() }
    }

    /// Lowers `expect condition`, which fails with the compared values if the condition is false.
    pub(super) fn expect(&mut self, condition: &'a Expr) {
        let span = condition.span;
        let (holds, shown) = match &condition.kind {
            ExprKind::Binary { operator, left, right, .. } if operator.is_comparison() => {
                let left_id = &left.id;
                let (left, right) = (self.expr(left), self.expr(right));
                let operands = vec![left.clone(), right.clone()];
                let ty = self.concrete(self.typed.expr_type(*left_id)).into_owned();
                (self.prim(comparison(*operator), operands, Type::Bool, span), Some((left, right, ty)))
            }
            _ => (self.expr(condition), None),
        };
        let mut said = String::from("expected");
        let expected = self.context.text.get(span.range()).unwrap_or_default();
        if !expected.is_empty() {
            _ = write!(said, " `{expected}`");
        }
        let nothing = Atom::Value(Value::Unit);
        self.choose(
            holds,
            &Type::Unit,
            span,
            |_| nothing,
            |lowering| {
                let mut parts = vec![Atom::Value(Value::text(&said))];
                if let Some((left, right, ty)) = shown {
                    for (side, value) in [(" left", left), ("right", right)] {
                        parts.push(Atom::Value(Value::text(&format!("\n  {side}: "))));
                        parts.extend(lowering.shown(value, &ty, 0, span));
                    }
                }
                let message = lowering.prim(Prim::Interpolate, parts, Type::Text, span);
                lowering.emit(Op::Fail(message), Type::Never, span)
            },
        );
    }

    pub(super) fn with(&mut self, expr: &'a Expr, replacements: &'a [Replacement], body: &'a Block) -> Atom {
        let count = self.replaced.len();
        let typed = self.typed;
        let targets = typed.of(expr.id).replacements.get(&expr.id).map_or(&[][..], |targets| targets);
        for (replacement, target) in replacements.iter().zip(targets) {
            match (self.callable(&replacement.value), target) {
                (Some(callable), Some(target)) => self.replaced.push((target.clone(), callable)),
                _ => _ = self.expr(&replacement.value),
            }
        }
        let value = self.block(body);
        self.replaced.truncate(count);
        value
    }

    /// Calls the replacement of a function, if it has one. Inside the replacement, the name refers to the original
    /// function.
    pub(super) fn call_replaced(
        &mut self,
        target: &CallTarget,
        given: &[Option<Binding<'a>>],
        ty: &Type,
        place: (Span, &[Option<&'a Expr>]),
    ) -> Option<Atom> {
        if self.module.is_some() && matches!(target, CallTarget::Function(_)) {
            return None;
        }
        let at = self.replaced.iter().rposition(|(known, _)| known == target)?;
        let later = self.replaced.split_off(at);
        let callable: Callable<'a> = later[0].1.clone();
        let given = self.with_defaults(target, given.to_vec());
        let value = self.call_value(callable, given, ty, place);
        self.replaced.extend(later);
        Some(value)
    }

    /// Returns the arguments with the defaults of the replaced function, which its replacement receives as well.
    pub(super) fn with_defaults(
        &mut self,
        target: &CallTarget,
        given: Vec<Option<Binding<'a>>>,
    ) -> Vec<Option<Binding<'a>>> {
        match target {
            CallTarget::Host(path) => {
                let function = self.context.library.function(path);
                let parameters = function.map_or(&[][..], |function| &function.signature.parameters);
                let default =
                    |parameter: &Parameter| parameter.default.clone().map(|it| Binding::Atom(Atom::Value(it)));
                given
                    .into_iter()
                    .zip(parameters)
                    .map(|(given, parameter)| given.or_else(|| default(parameter)))
                    .collect()
            }
            CallTarget::Function(name) => {
                let at = self.typed.declarations.fn_index(name);
                let item = self.typed.declarations.functions[at].item;
                let ItemKind::Function(function) = &self.tree.items[item].kind else { return given };
                let outer = std::mem::take(&mut self.names);
                self.bind_parameters(at, given, function);
                let bound = self.typed.fn_locals(at).iter().map(|local| self.names.get(local).cloned()).collect();
                self.names = outer;
                bound
            }
            _ => given,
        }
    }
}

fn comparison(operator: BinaryOperator) -> Prim {
    match operator {
        BinaryOperator::NotEqual => Prim::NotEqual,
        BinaryOperator::Less => Prim::Less,
        BinaryOperator::LessEqual => Prim::LessOrEqual,
        BinaryOperator::Greater => Prim::Greater,
        BinaryOperator::GreaterEqual => Prim::GreaterOrEqual,
        _ => Prim::Equal,
    }
}
