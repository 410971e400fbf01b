//! Code lenses: the tests of a document, which an editor can run.

use weir_syntax::Span;
use weir_syntax::ast::ItemKind;

use crate::document::Document;

/// A test with the place of its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestLens {
    /// The span of the name.
    pub span: Span,
    /// The name of the test.
    pub name: String,
}

impl Document {
    /// Returns the tests of the document, in source order.
    #[must_use]
    pub fn test_lenses(&self) -> Vec<TestLens> {
        let tests = self.items().filter_map(|item| match &item.kind {
            ItemKind::Test(test) => Some(TestLens { span: test.name_span, name: test.name.to_string() }),
            _ => None,
        });
        tests.collect()
    }
}
