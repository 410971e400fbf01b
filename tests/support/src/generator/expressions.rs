//! Random expressions, statements and blocks.

use super::patterns::escaped;
use super::{Generator, nowhere};
use std::sync::Arc;
use weir_syntax::ast::{
    Argument, Arm, AtomicResource, BinaryOperator, Block, ClosureParameter, Expr, ExprId, ExprKind, FieldValue, Let,
    MapEntry, Otherwise, Replacement, Statement, StatementKind, TextFormat, TextLiteral, TextPart, TextStyle,
    UnaryOperator,
};

impl Generator {
    /// Generates the outermost block of an item.
    pub(super) fn body(&mut self, depth: usize) -> Block {
        let mut block = self.block(depth);
        if self.chance(20) {
            let kind = StatementKind::FailureHandler(self.handler());
            block.statements.insert(0, Statement { kind, span: nowhere() });
        }
        block
    }

    pub(super) fn block(&mut self, depth: usize) -> Block {
        Block { statements: self.several(0, 3, |generator| generator.statement(depth)), span: nowhere() }
    }

    fn statement(&mut self, depth: usize) -> Statement {
        let kind = match self.below(4) {
            0 => StatementKind::Let(Let {
                pattern: self.pattern(2),
                ty: self.some(20, |generator| generator.ty(2)),
                value: self.expr(depth),
                otherwise: self.some(30, |generator| Otherwise {
                    failure: generator.some(50, Self::lower),
                    body: generator.expr(depth),
                    span: nowhere(),
                }),
            }),
            1 => StatementKind::Expect(self.expr(depth)),
            _ => StatementKind::Expr(self.expr(depth)),
        };
        Statement { kind, span: nowhere() }
    }

    pub(super) fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    pub(super) fn expr(&mut self, depth: usize) -> Expr {
        let kind = match depth {
            0 => self.leaf(),
            _ => match self.below(4) {
                0 => self.leaf(),
                1 => self.operation(depth - 1),
                2 => self.compound(depth - 1),
                _ => self.control(depth - 1),
            },
        };
        expr(kind)
    }

    fn leaf(&mut self) -> ExprKind {
        match self.below(6) {
            0 | 1 => ExprKind::Name(self.lower()),
            2 => ExprKind::Name(self.upper()),
            3 => ExprKind::Literal(self.literal()),
            4 if self.chance(33) => ExprKind::Html(self.text(0)),
            4 => ExprKind::Text(self.text(0)),
            _ => ExprKind::Return(None),
        }
    }

    fn operation(&mut self, depth: usize) -> ExprKind {
        match self.below(11) {
            0 => ExprKind::Field { object: self.boxed(depth), name: self.lower() },
            1 => {
                ExprKind::TupleIndex { object: self.boxed(depth), index: self.below(12) as u32, index_span: nowhere() }
            }
            2 => ExprKind::Index { object: self.boxed(depth), index: self.boxed(depth) },
            3 => ExprKind::Call { function: self.boxed(depth), arguments: self.arguments(depth) },
            4 => self.pipe(depth),
            5 => {
                let operator = if self.chance(50) { UnaryOperator::Negate } else { UnaryOperator::Not };
                ExprKind::Unary { operator, operand: self.boxed(depth) }
            }
            6 | 7 => ExprKind::Binary {
                operator: self.pick(&BinaryOperator::ALL),
                operator_span: nowhere(),
                left: self.boxed(depth),
                right: self.boxed(depth),
            },
            8 => ExprKind::Try(self.boxed(depth)),
            9 => ExprKind::Else {
                value: self.boxed(depth),
                failure: self.some(40, Self::lower),
                otherwise: self.boxed(depth),
            },
            _ => ExprKind::Within { value: self.boxed(depth), limit: self.boxed(depth) },
        }
    }

    fn pipe(&mut self, depth: usize) -> ExprKind {
        let mut function = expr(ExprKind::Name(self.lower()));
        for _ in 0..self.below(3) {
            function = expr(ExprKind::Field { object: Box::new(function), name: self.lower() });
        }
        ExprKind::Pipe { value: self.boxed(depth), function: Box::new(function), arguments: self.arguments(depth) }
    }

    fn compound(&mut self, depth: usize) -> ExprKind {
        let values = |generator: &mut Self| generator.expr(depth);
        match self.below(8) {
            0 if self.chance(33) => ExprKind::Html(self.text(depth)),
            0 => ExprKind::Text(self.text(depth)),
            1 => ExprKind::Return(Some(self.boxed(depth))),
            2 => ExprKind::Tuple(self.several(0, 3, values)),
            3 => ExprKind::List(self.several(0, 3, values)),
            4 => {
                let entry =
                    |generator: &mut Self| MapEntry { key: generator.expr(depth), value: generator.expr(depth) };
                ExprKind::Map(self.several(0, 3, entry))
            }
            5 => ExprKind::Record {
                path: self.upper_path(),
                base: self.some(40, |generator| generator.boxed(depth)),
                fields: self.several(0, 3, |generator| generator.field_value(depth)),
            },
            6 => {
                let parameter = |generator: &mut Self| ClosureParameter {
                    pattern: generator.pattern(1),
                    ty: generator.some(30, |generator| generator.ty(1)),
                };
                ExprKind::Closure { parameters: self.several(0, 2, parameter), body: self.boxed(depth) }
            }
            _ => ExprKind::Race(self.several(0, 3, values)),
        }
    }

    fn control(&mut self, depth: usize) -> ExprKind {
        match self.below(10) {
            0 | 1 => self.if_kind(depth),
            2 => {
                ExprKind::Match { value: self.boxed(depth), arms: self.several(0, 3, |generator| generator.arm(depth)) }
            }
            3 => ExprKind::For {
                pattern: Box::new(self.pattern(2)),
                items: self.boxed(depth),
                query: Box::new(self.query(depth)),
                body: self.block(depth),
            },
            4 => ExprKind::Fold {
                accumulator: Box::new(self.pattern(1)),
                initial: self.boxed(depth),
                pattern: Box::new(self.pattern(1)),
                items: self.boxed(depth),
                body: self.block(depth),
            },
            5 => ExprKind::Loop {
                state: Box::new(self.pattern(1)),
                initial: self.boxed(depth),
                body: self.block(depth),
                until: self.boxed(depth),
                at_most: self.boxed(depth),
            },
            6 => ExprKind::Block(self.block(depth)),
            7 => {
                let resource = |generator: &mut Self| AtomicResource {
                    read: generator.some(30, |_| nowhere()),
                    path: generator.lower_path(),
                    per_session: generator.chance(40),
                    span: nowhere(),
                };
                ExprKind::Atomic { resources: self.several(1, 3, resource), body: self.block(depth) }
            }
            8 => ExprKind::Retry { arguments: self.arguments(depth), body: self.block(depth) },
            _ => {
                let replacement = |generator: &mut Self| Replacement {
                    function: generator.lower_path(),
                    value: generator.expr(depth),
                    span: nowhere(),
                };
                ExprKind::With { replacements: self.several(1, 2, replacement), body: self.block(depth) }
            }
        }
    }

    fn if_kind(&mut self, depth: usize) -> ExprKind {
        let otherwise = match self.below(if depth == 0 { 2 } else { 3 }) {
            0 => None,
            1 => Some(ExprKind::Block(self.block(depth))),
            _ => Some(self.if_kind(depth - 1)),
        };
        ExprKind::If {
            condition: self.boxed(depth),
            then: self.block(depth),
            otherwise: otherwise.map(|kind| Box::new(expr(kind))),
        }
    }

    fn arm(&mut self, depth: usize) -> Arm {
        Arm {
            pattern: self.pattern(2),
            guard: self.some(30, |generator| generator.expr(depth)),
            body: self.expr(depth),
            span: nowhere(),
        }
    }

    /// Generates arguments, the positional ones first.
    pub(super) fn arguments(&mut self, depth: usize) -> Vec<Argument> {
        let positional = |generator: &mut Self| Argument { name: None, value: generator.expr(depth), span: nowhere() };
        let mut arguments = self.several(0, 2, positional);
        let named = |generator: &mut Self| Argument { name: Some(generator.lower()), ..positional(generator) };
        arguments.extend(self.several(0, 2, named));
        arguments
    }

    fn field_value(&mut self, depth: usize) -> FieldValue {
        let name = self.lower();
        let shorthand = self.chance(40);
        let value = if shorthand { expr(ExprKind::Name(name.clone())) } else { self.expr(depth) };
        FieldValue { name, value, shorthand, span: nowhere() }
    }

    fn text(&mut self, depth: usize) -> TextLiteral {
        let style = if self.chance(25) { TextStyle::Block } else { TextStyle::Line };
        let mut parts = Vec::new();
        for _ in 0..self.below(4) {
            let follows_literal = matches!(parts.last(), Some(TextPart::Literal { .. }));
            if follows_literal || self.chance(40) {
                let value = self.expr(depth.min(2));
                let format = self.pick(&["", "", "", ".2", ",", ">8", "<12,.0", "08.1"]);
                parts.push(TextPart::Expr(match TextFormat::parse(format) {
                    Some(format) => {
                        expr(ExprKind::Formatted { value: Box::new(value), format, format_span: nowhere() })
                    }
                    None => value,
                }));
            } else {
                parts.push(self.text_piece(style));
            }
        }
        // A block of one empty line is written like a block of none.
        let is_empty_line = |part: &TextPart| matches!(part, TextPart::Literal { raw, .. } if raw.is_empty());
        parts.retain(|part| !is_empty_line(part));
        TextLiteral { style, parts, span: nowhere() }
    }

    fn text_piece(&mut self, style: TextStyle) -> TextPart {
        let value = match style {
            TextStyle::Line => self.characters(),
            TextStyle::Block => {
                let pieces = ["a", " ", "\n", "\n", "  ", "\"", "{", "}", "é"];
                self.several(1, 6, |generator| generator.pick(&pieces)).concat()
            }
        };
        let raw = match style {
            TextStyle::Line => escaped(&value),
            TextStyle::Block => escaped(&value).replace("\\n", "\n"),
        };
        TextPart::Literal { value: Arc::from(value), raw: Arc::from(raw) }
    }
}

fn expr(kind: ExprKind) -> Expr {
    Expr { id: ExprId { file: 0, index: 0 }, kind, span: nowhere(), parenthesized: false }
}
