//! The table of diagnostic codes, each with its page of explanation.
//!
//! To add a code, write its page as `codes/E0123.md` (first line `# Title`, then the cause, an example under "Wrong"
//! and its correction under "Fixed") and add one row here. Ranges: E01 syntax, E02 names, E03 types, E04 patterns, E05
//! moves, effects and resources, E06 services and sources, W07 warnings.

use std::fmt;

/// Severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The program cannot run.
    Error,
    /// The program runs, but probably not as intended.
    Warning,
}

macro_rules! codes {
    ($($id:ident $name:ident,)*) => {
        /// A rule that a program can break.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[allow(missing_docs, reason = "each code's page documents it")]
        pub enum Code { $($name,)* }

        /// Every code, in the order of the table.
        pub const ALL: &[Code] = &[$(Code::$name,)*];

        impl Code {
            /// Returns the code as users write it: `E0102`.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => stringify!($id),)* }
            }

            /// Returns the name of the rule: `UnterminatedText`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// Returns the page that `weir explain` shows, as Markdown. Its first line is `# ` and the title.
            #[must_use]
            pub fn page(self) -> &'static str {
                match self { $(Self::$name => include_str!(concat!("codes/", stringify!($id), ".md")),)* }
            }
        }
    };
}

codes! {
    E0101 UnexpectedToken,
    E0102 UnterminatedText,
    E0103 UnclosedDelimiter,
    E0104 UnmatchedDelimiter,
    E0105 UnknownCharacter,
    E0106 InvalidEscape,
    E0107 InvalidNumber,
    E0108 NestingTooDeep,
    E0109 SourceTooLong,
    E0110 NotUtf8,
    E0111 InterpolationOverLines,
    E0112 BlockTextLayout,
    E0113 ChainedComparison,
    E0114 PositionalAfterNamed,
    E0115 RepeatedSession,
    E0116 MisplacedClause,
    E0117 MissingLineEnd,
    E0118 NameCase,
    E0119 InvalidRoutePath,
    E0120 UnboundedLoop,
    E0121 ReservedWord,
    E0122 Assignment,
    E0123 DialectSyntax,
    E0124 TextDirection,
    E0201 UnknownModule,
    E0202 UnknownName,
    E0203 UnknownMember,
    E0204 UnknownType,
    E0205 UnknownVariant,
    E0206 UnknownField,
    E0207 NameTaken,
    E0208 Recursion,
    E0209 ModuleNotUsed,
    E0210 NotAValue,
    E0211 UnknownMethod,
    E0212 ModuleCircle,
    E0213 PrivateItem,
    E0214 PrivateType,
    E0215 MainFileItem,
    E0216 ModuleFile,
    E0301 TypeMismatch,
    E0302 MissingArgument,
    E0303 UnknownArgument,
    E0304 NotCallable,
    E0305 OperatorTypes,
    E0306 CannotFail,
    E0307 UnknownElementType,
    E0308 TypeArguments,
    E0309 NotACollection,
    E0310 NoText,
    E0311 FailureType,
    E0312 RecordFields,
    E0313 NothingToLeave,
    E0315 NotConstant,
    E0316 FunctionAsValue,
    E0317 ProgramTooLarge,
    E0318 EndlessType,
    E0319 WithOutsideTest,
    E0320 ClosedValue,
    E0321 TypeTooLarge,
    E0322 ConfigurationForm,
    E0323 GenericFunction,
    E0324 TableDeclaration,
    E0325 QueryForm,
    E0326 ReadOnlyTable,
    E0328 MalformedTemplate,
    E0329 UnsafeInterpolation,
    E0401 MissingCases,
    E0402 PatternType,
    E0403 PatternArguments,
    E0404 RefutablePattern,
    E0405 AlternativesDiffer,
    E0406 BoundTwice,
    E0407 ElseFallsThrough,
    E0408 ConstantPattern,
    E0501 MovedValue,
    E0502 SharedAsValue,
    E0503 NotAResource,
    E0504 MixedScope,
    E0505 NoSession,
    E0507 RaceInStep,
    E0508 SessionValue,
    E0509 ChangedValue,
    E0510 TransactionBody,
    E0511 ConstraintBinding,
    E0512 ReadOfShared,
    E0513 RaceWritesTable,
    E0601 UnknownSource,
    E0602 RouteParameterType,
    E0603 RouteParameter,
    E0604 DuplicateRoute,
    E0605 ListenAddress,
    E0606 SourceArgument,
    E0607 CookieKind,
    E0608 InvalidCookie,
    E0609 StandardInputTwice,
    W0701 UnusedModule,
    W0702 UnhandledFailure,
    W0703 LostUpdate,
    W0704 UnreachableArm,
    W0705 HoistedConstraint,
    W0706 RetriedEffect,
    W0707 HiddenDivision,
    W0708 UnusedName,
    W0709 UnusedDeclaration,
    W0710 UnusedValue,
    W0711 UnreachableCode,
    W0712 ConstantCondition,
    W0713 ShadowingPattern,
    W0714 BypassedHandler,
    W0715 FullScan,
    W0716 UnreachedHandler,
    W0717 RepeatedKey,
    W0718 ExclusiveReader,
    W0719 UnpairedCookie,
    W0720 NumberBraces,
    W0721 KeptWrites,
    W0722 DollarBraces,
    W0723 UnusedAllow,
}

impl Code {
    /// Returns the code for an id in either case, or for its number alone.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        ALL.iter().copied().find(|code| {
            let number = code.id().trim_start_matches(['E', 'W', '0']);
            code.id().eq_ignore_ascii_case(id) || number == id.trim_start_matches('0')
        })
    }

    /// Returns the title: the first line of the page.
    #[must_use]
    pub fn title(self) -> &'static str {
        let line = self.page().lines().next().unwrap_or_default();
        line.trim_start_matches("# ")
    }

    /// Returns true if a comment can silence the diagnostic: if it is a warning, but for the one of comments without effect.
    #[must_use]
    pub fn can_be_allowed(self) -> bool {
        self.severity() == Severity::Warning && self != Self::UnusedAllow
    }

    /// Returns true if the code that the diagnostic marks could be removed without changing what the program does.
    /// Editors show such code faded.
    #[must_use]
    pub fn is_unnecessary(self) -> bool {
        matches!(
            self,
            Self::UnusedModule
                | Self::UnusedAllow
                | Self::UnusedName
                | Self::UnusedDeclaration
                | Self::UnusedValue
                | Self::UnreachableArm
                | Self::UnreachableCode
                | Self::UnreachedHandler
        )
    }

    /// Returns the severity, which the first letter of the code determines.
    #[must_use]
    pub fn severity(self) -> Severity {
        if self.id().starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.id())
    }
}
