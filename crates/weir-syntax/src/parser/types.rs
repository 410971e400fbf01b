//! Type expressions: names with arguments, tuples, functions.

use super::Parser;
use crate::ast::{Type, TypeKind};
use crate::token::TokenKind as T;

impl Parser<'_> {
    /// `path [( type,* )]?`, `( type,* )`, `fn( type,* ) [-> type]?`
    pub(super) fn ty(&mut self) -> Type {
        let start = self.span();
        let kind = self.nested(Self::type_kind).unwrap_or(TypeKind::Error);
        let kind = self.type_suffix(start, kind);
        Type { kind, span: self.since(start) }
    }

    fn type_kind(&mut self) -> TypeKind {
        match self.peek() {
            T::Word => self.named_type(),
            T::ParenOpen => self.tuple_type(),
            T::Fn => self.function_type(),
            T::BracketOpen => self.type_in_brackets(),
            _ => {
                self.unexpected("a type");
                TypeKind::Error
            }
        }
    }

    /// `path [( type,* )]?`
    fn named_type(&mut self) -> TypeKind {
        let path = self.path("a type");
        let is_bracket = self.at(T::BracketOpen) && self.nth_kind(1) != T::BracketClose;
        if (self.at(T::Less) || is_bracket) && !self.token().first_on_line {
            return TypeKind::Named { arguments: self.types_in_angles(&path), path };
        }
        let has_arguments = self.at(T::ParenOpen) && !self.token().first_on_line;
        let arguments = if has_arguments { self.delimited(T::ParenOpen, Self::ty) } else { Vec::new() };
        TypeKind::Named { path, arguments }
    }

    /// `( type,* )`; parentheses around one type have no meaning.
    fn tuple_type(&mut self) -> TypeKind {
        let mut types = self.delimited(T::ParenOpen, Self::ty);
        match types.len() {
            1 => types.remove(0).kind,
            _ => TypeKind::Tuple(types),
        }
    }

    /// `fn( type,* ) [-> type]?`
    fn function_type(&mut self) -> TypeKind {
        self.bump();
        if !self.at(T::ParenOpen) {
            self.unexpected("`(`");
        }
        let parameters = self.delimited(T::ParenOpen, Self::ty);
        let returns = self.eat(T::Arrow).map(|_| Box::new(self.ty()));
        TypeKind::Function { parameters, returns }
    }
}
