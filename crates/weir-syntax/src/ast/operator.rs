//! Operators.

/// A unary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOperator {
    /// `-`.
    Negate,
    /// `!`.
    Not,
}

/// A binary operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOperator {
    /// `||`; evaluates the right operand only if the left one is false.
    Or,
    /// `&&`; evaluates the right operand only if the left one is true.
    And,
    /// `==`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterEqual,
    /// `+`.
    Add,
    /// `-`.
    Subtract,
    /// `*`.
    Multiply,
    /// `/`.
    Divide,
    /// `%`.
    Remainder,
}

impl UnaryOperator {
    /// Returns the operator as it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Negate => "-",
            Self::Not => "!",
        }
    }
}

impl BinaryOperator {
    /// All operators.
    pub const ALL: [Self; 13] = [
        Self::Or,
        Self::And,
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessEqual,
        Self::Greater,
        Self::GreaterEqual,
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Remainder,
    ];

    /// Returns the operator as it is written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Or => "||",
            Self::And => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// Returns true for a comparison, which cannot be chained.
    #[must_use]
    pub fn is_comparison(self) -> bool {
        use BinaryOperator as B;
        matches!(self, B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual)
    }
}
