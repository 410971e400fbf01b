//! Checks operators.

use weir_syntax::ast::{BinaryOperator, Expr, UnaryOperator};
use weir_syntax::{Code, Diagnostic, Span};

use super::generics::stands_for_any;
use super::{Expected, TypeChecker};
use crate::lang_items::HTML;
use crate::typed_tree::Demand;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn unary(&mut self, operator: UnaryOperator, operand: &'a Expr) -> Ty {
        match operator {
            UnaryOperator::Not => {
                self.expr(operand, Some(&Expected::new(Ty::BOOL, operand.span, "`!` takes a `Bool`")));
                Ty::BOOL
            }
            UnaryOperator::Negate => {
                let ty = self.expr(operand, None);
                let ty = self.inference.shallow(&ty);
                if [Ty::INT, Ty::FLOAT, Ty::DURATION, Ty::Error, Ty::NEVER].contains(&ty) {
                    return ty;
                }
                if let Ty::Unknown(_) = ty {
                    return self.unknown_here(operand.span, &ty);
                }
                let ty = self.inference.resolve(&ty);
                let diagnostic = Diagnostic::new(Code::OperatorTypes, format!("`-` does not work on `{ty}`"))
                    .at(operand.span, format!("this is `{ty}`"))
                    .note("`-` works on `Int`, `Float` and `Duration`");
                self.report(diagnostic);
                Ty::Error
            }
        }
    }

    pub(super) fn binary(&mut self, operator: BinaryOperator, span: Span, left: &'a Expr, right: &'a Expr) -> Ty {
        match operator {
            BinaryOperator::And | BinaryOperator::Or => {
                let why = format!("`{}` takes `Bool`s", operator.symbol());
                let expected = Expected::new(Ty::BOOL, span, why);
                self.expr(left, Some(&expected));
                self.expr(right, Some(&expected));
                Ty::BOOL
            }
            _ if operator.is_comparison() => self.comparison(operator, span, left, right),
            _ => self.arithmetic(operator, span, left, right),
        }
    }

    fn comparison(&mut self, operator: BinaryOperator, span: Span, left: &'a Expr, right: &'a Expr) -> Ty {
        let ty = self.expr(left, None);
        let why = format!(
            "`{}` compares values of one type, and this is `{}`",
            operator.symbol(),
            self.inference.resolve(&ty)
        );
        let equality = matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
        let expected = Expected::new(ty.clone(), left.span, why);
        // An `Option` has no order, whatever the other side is.
        let is_unordered = !equality && matches!(self.inference.shallow(&ty), Ty::Option(_));
        self.expr(right, (!is_unordered).then_some(&expected));
        let ty = self.inference.resolve(&ty);
        if !equality && matches!(ty, Ty::Unknown(_)) {
            self.unknown_here(left.span, &ty);
            return Ty::BOOL;
        }
        let fits = if equality { self.has_equality(&ty) } else { ty.has_order() };
        self.demand(&ty, if equality { Demand::Equality } else { Demand::Order }, span);
        if !fits {
            let what = if equality { "compared" } else { "ordered" };
            let diagnostic =
                Diagnostic::new(Code::OperatorTypes, format!("values of the type `{ty}` cannot be {what}"))
                    .at(span, format!("`{}` does not work on `{ty}`", operator.symbol()))
                    .because(left.span, format!("this is `{ty}`"));
            self.report(match ty {
                Ty::Option(_) if !equality => diagnostic.hint(format!(
                    "handle `None` first: `match value {{ Some(x) => x {} …, None => false }}`, or `(value else {{ … }})`",
                    operator.symbol()
                )),
                _ => diagnostic,
            });
        }
        Ty::BOOL
    }

    pub(super) fn has_equality(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Function(_) => false,
            Ty::List(part) | Ty::Option(part) => self.has_equality(part),
            Ty::Map(pair) | Ty::Result(pair) => self.has_equality(&pair.0) && self.has_equality(&pair.1),
            Ty::Tuple(parts) => parts.iter().all(|part| self.has_equality(part)),
            other => !other.name().is_some_and(|name| self.is_opaque(name)),
        }
    }

    fn arithmetic(&mut self, operator: BinaryOperator, span: Span, left: &'a Expr, right: &'a Expr) -> Ty {
        let l = self.expr(left, None);
        let r = self.expr(right, None);
        let (mut l, mut r) = (self.inference.shallow(&l), self.inference.shallow(&r));
        if matches!(l, Ty::Unknown(_)) || matches!(r, Ty::Unknown(_)) {
            self.inference.unify(&l, &r);
            (l, r) = (self.inference.shallow(&l), self.inference.shallow(&r));
        }
        if l == Ty::Error || r == Ty::Error {
            return Ty::Error;
        }
        if let Ty::Unknown(_) = l {
            return self.unknown_here(left.span, &l);
        }
        if l.is_never() || r.is_never() {
            return Ty::NEVER;
        }
        if let Some(ty) = arithmetic_type(operator, &l, &r) {
            return ty;
        }
        if let (Ty::List(_), Ty::List(_), BinaryOperator::Add) = (&l, &r, operator)
            && self.inference.unify(&l, &r)
        {
            return l;
        }
        self.no_arithmetic(operator, span, (left, &l), (right, &r));
        Ty::Error
    }

    fn no_arithmetic(&mut self, operator: BinaryOperator, span: Span, left: (&Expr, &Ty), right: (&Expr, &Ty)) {
        let (l, r) = (self.inference.resolve(left.1), self.inference.resolve(right.1));
        let symbol = operator.symbol();
        let diagnostic = Diagnostic::new(Code::OperatorTypes, format!("`{symbol}` does not work on `{l}` and `{r}`"))
            .at(span, format!("no `{symbol}` for these types"))
            .because(left.0.span, format!("this is `{l}`"))
            .because(right.0.span, format!("this is `{r}`"));
        self.report(match l.parameter_name().or(r.parameter_name()) {
            Some(name) => diagnostic.note(stands_for_any(name)).hint("take a function that does this as a parameter"),
            None => arithmetic_hint(diagnostic, operator, &l, &r),
        });
    }
}

fn arithmetic_hint(diagnostic: Diagnostic, operator: BinaryOperator, l: &Ty, r: &Ty) -> Diagnostic {
    let has = |ty: &Ty| l == ty || r == ty;
    if operator == BinaryOperator::Add && has(&Ty::named(HTML)) {
        return diagnostic.hint("put parts of a page into a template: `html\"{a}{b}\"`");
    }
    if operator == BinaryOperator::Add && has(&Ty::TEXT) {
        return diagnostic.hint("put values into a text with braces: `\"{a} and {b}\"`");
    }
    if has(&Ty::INT) && has(&Ty::FLOAT) {
        return diagnostic
            .hint("write a literal with a decimal point, as in `1.0`, and convert other numbers: `n.to_float()`");
    }
    if has(&Ty::DURATION) && has(&Ty::FLOAT) {
        return diagnostic.hint("calculate with whole numbers: `duration * 3 / 2`");
    }
    if matches!(l, Ty::Option(_)) || matches!(r, Ty::Option(_)) {
        return diagnostic.hint("handle `None` first: `(value else { 0 })`, or `match` it");
    }
    if matches!(l, Ty::Result(_)) || matches!(r, Ty::Result(_)) {
        return diagnostic.hint("unwrap the value first, with `?` or `else { … }`");
    }
    diagnostic
}

/// Returns the result type of an arithmetic operator; lists are handled elsewhere.
fn arithmetic_type(operator: BinaryOperator, l: &Ty, r: &Ty) -> Option<Ty> {
    use BinaryOperator as B;
    let number = *l == Ty::INT || *l == Ty::FLOAT;
    if number && l == r {
        return Some(l.clone());
    }
    let measure = *l == Ty::DURATION || *l == Ty::SIZE;
    match operator {
        B::Add | B::Subtract if measure && l == r => Some(l.clone()),
        B::Add if *l == Ty::TEXT && *r == Ty::TEXT => Some(Ty::TEXT),
        B::Add | B::Subtract if *l == Ty::TIME && *r == Ty::DURATION => Some(Ty::TIME),
        B::Add if *l == Ty::DURATION && *r == Ty::TIME => Some(Ty::TIME),
        B::Subtract if *l == Ty::TIME && *r == Ty::TIME => Some(Ty::DURATION),
        B::Multiply | B::Divide if measure && *r == Ty::INT => Some(l.clone()),
        B::Multiply if *l == Ty::INT && (*r == Ty::DURATION || *r == Ty::SIZE) => Some(r.clone()),
        B::Divide if measure && l == r => Some(Ty::INT),
        _ => None,
    }
}
