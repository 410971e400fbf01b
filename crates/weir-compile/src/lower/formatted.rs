//! Lowers interpolated values with a format to calls of the functions that format and pad.

use weir_host::{Text, Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Alignment, Expr, TextFormat};

use super::{Binding, Lowering};
use crate::lang_items::{FORMAT_FLOAT, FORMAT_INT, PAD_END, PAD_START};
use crate::types::Ty;

impl<'a> Lowering<'a, '_> {
    pub(super) fn formatted(&mut self, value: &'a Expr, format: TextFormat, span: Span) -> Atom {
        let ty = self.ty(value);
        let is_number = matches!(ty, Type::Int | Type::Float);
        let atom = self.expr(value);
        let text = match ty {
            Type::Int => self.formatted_int(atom, format, span),
            Type::Float => self.formatted_float(atom, format, span),
            ty => {
                let parts = self.shown(atom, &Ty::fixed(&ty), 0, span);
                self.prim(Prim::Interpolate, parts, Type::Text, span)
            }
        };
        let Some(width) = format.width.filter(|_| !format.zeros) else { return text };
        // Numbers stand below each other by their last digits, everything else by its first character.
        let pads_start = format.alignment.map_or(is_number, |alignment| alignment == Alignment::Right);
        let pad = if pads_start { PAD_START } else { PAD_END };
        let arguments = [text, number(width), Atom::Value(Value::text(" "))];
        self.format_call(pad, arguments.into(), span)
    }

    fn formatted_int(&mut self, int: Atom, format: TextFormat, span: Span) -> Atom {
        let zeros = format.width.filter(|_| format.zeros).unwrap_or(0);
        self.format_call(FORMAT_INT, vec![int, Atom::Value(Value::Bool(format.thousands)), number(zeros)], span)
    }

    fn formatted_float(&mut self, float: Atom, format: TextFormat, span: Span) -> Atom {
        let zeros = format.width.filter(|_| format.zeros).unwrap_or(0);
        let decimals = format.decimals.map_or_else(Value::none, |digits| Value::some(Value::Int(digits.into())));
        let thousands = Atom::Value(Value::Bool(format.thousands));
        self.format_call(FORMAT_FLOAT, vec![float, Atom::Value(decimals), thousands, number(zeros)], span)
    }

    fn format_call(&mut self, path: &str, arguments: Vec<Atom>, span: Span) -> Atom {
        let given = arguments.into_iter().map(|argument| Some(Binding::Atom(argument))).collect();
        self.call_host(&Text::from(path), given, Type::Text, (span, &[]))
    }
}

fn number(number: u16) -> Atom {
    Atom::Value(Value::Int(number.into()))
}
