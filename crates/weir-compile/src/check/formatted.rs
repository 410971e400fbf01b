//! Checks interpolated values with a format: `{price:,.2}`.

use weir_syntax::ast::{Expr, TextFormat};
use weir_syntax::{Code, Diagnostic, Span};

use super::TypeChecker;
use crate::lang_items::FORMATS;
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn formatted(&mut self, value: &'a Expr, format: TextFormat, format_span: Span) -> Ty {
        let ty = self.expr(value, None);
        let ty = self.inference.resolve(&ty);
        let is_number = ty == Ty::INT || ty == Ty::FLOAT;
        match ty {
            Ty::Error => return Ty::TEXT,
            Ty::Unknown(_) => {
                self.unknown_here(value.span, &ty);
                return Ty::TEXT;
            }
            _ => {}
        }
        if let Some(missing) = FORMATS.iter().find(|path| self.context.library.function(path).is_none()) {
            let message = format!("there is no function `{missing}`, which formats need");
            let diagnostic = Diagnostic::new(Code::UnknownModule, message).at(format_span, "a format");
            self.report(diagnostic);
        } else if format.decimals.is_some() && ty == Ty::INT {
            let diagnostic = no_format(format_span, &ty, "an `Int` has no decimals");
            self.report(diagnostic.hint("convert it: `{n.to_float():.2}`"));
        } else if (format.decimals.is_some() || format.thousands || format.zeros) && !is_number {
            let diagnostic = no_format(format_span, &ty, "only numbers have decimals, thousands and zeros in front");
            self.report(diagnostic.hint("write only a width: `{value:8}`, `{value:<8}` or `{value:>8}`"));
        } else {
            self.shown(value.span, &ty);
        }
        Ty::TEXT
    }
}

fn no_format(span: Span, ty: &Ty, why: &str) -> Diagnostic {
    Diagnostic::new(Code::NoText, format!("a value of the type `{ty}` cannot have this format"))
        .at(span, why.to_owned())
}
