//! A source of consecutive numbers that waits while the program is full, and keeps every answer.

use std::sync::Arc;

use parking_lot::Mutex;
use weir_host::{
    Begun, Failure, Flows, Library, LocalFuture, Module, Opened, Parameter, Passing, Route, Source, SourceSignature,
    Stop, Type, Value,
};

use super::Answer;

/// A finite stream of the numbers from 0 on.
#[derive(Clone)]
pub struct Numbers {
    count: i64,
    answers: Arc<Mutex<Vec<Option<Answer>>>>,
    full: Arc<Mutex<usize>>,
    /// True if the source discards the answers.
    gives: bool,
}

impl Numbers {
    /// Creates a source of the numbers below `count`.
    ///
    /// # Panics
    /// Panics on a negative count.
    #[must_use]
    pub fn new(count: i64) -> Numbers {
        let answers = vec![None; usize::try_from(count).expect("a number of flows")];
        Numbers { count, answers: Arc::new(Mutex::new(answers)), full: Arc::default(), gives: false }
    }

    /// Creates a source that discards the answers.
    pub fn given(count: i64) -> Numbers {
        Numbers { gives: true, ..Numbers::new(count) }
    }

    /// Adds the source to the library as `test.feed`.
    pub fn put(&self, library: &mut Library) {
        let first = Parameter { name: "first".into(), ty: Type::Int, passing: Passing::Value, default: None };
        let signature = SourceSignature {
            module: "test".into(),
            name: "feed".into(),
            doc: "The numbers from 0 on.".into(),
            parameters: vec![first],
            element: Some(Type::Int),
            answer: None,
            ordered: true,
        };
        let module = Module::new("test", "").source(signature, Arc::new(self.clone()));
        library.modules.insert("test".into(), module);
    }

    /// Returns the answers in the order of the numbers, and panics if one is missing.
    pub fn answers(&self) -> Vec<Answer> {
        self.answers.lock().iter().map(|answer| answer.clone().expect("every flow is answered")).collect()
    }

    /// Returns how often the program was full.
    pub fn full(&self) -> usize {
        *self.full.lock()
    }

    fn keep(&self, number: i64, answer: Answer) {
        let index = usize::try_from(number).expect("a number of a flow");
        let before = self.answers.lock()[index].replace(answer);
        assert!(before.is_none(), "flow {number} was answered twice");
    }
}

impl Source for Numbers {
    fn open(&self, _: Vec<Value>, _: Arc<[Route]>, _: &weir_host::Environment) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::new(self.clone()))
    }
}

impl Opened for Numbers {
    fn describe(&self) -> String {
        format!("the numbers below {}", self.count)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let mut number = 0;
            while number < self.count {
                let mut inputs = vec![Value::Int(number)];
                let begun = if self.gives { flows.begin_detached(0, &mut inputs) } else { flows.begin(0, &mut inputs) };
                match begun {
                    Begun::Done(answer) => self.keep(number, answer),
                    Begun::Pending(answer) => {
                        let own = Arc::clone(&self);
                        tokio::task::spawn_local(async move { own.keep(number, answer.await) });
                    }
                    Begun::Full => {
                        *self.full.lock() += 1;
                        flows.room().await;
                        continue;
                    }
                }
                number += 1;
            }
            Ok(())
        })
    }
}
