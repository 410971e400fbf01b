//! `weir::library!`: the signatures of a module's functions, as the compiler sees them.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod common;

use std::fmt::Write as _;
use std::time::Duration;

use common::Frame;
use weir::{Bytes, Failure, Function, Generic, Size, Text, Value};

mod codec {
    use super::*;

    /// A picture.
    #[derive(weir::Type, Clone)]
    #[weir(opaque, name = "image.Ppm")]
    pub(crate) struct Ppm(pub(crate) Bytes);

    /// Compresses an image to JPEG.
    ///
    /// The quality is 1 to 100.
    #[weir::function(pure)]
    pub(crate) fn to_jpeg(image: &Ppm, #[default(85)] quality: u8) -> Result<Bytes, Failure> {
        if quality == 0 { Err(Failure::function("no quality")) } else { Ok(image.0.clone()) }
    }
}

#[weir::function(idempotent, name = "store")]
fn put(cache: &mut codec::Ppm, _key: &str, #[default(Size::mb(64))] limit: Size, #[default("a")] tag: &str) {
    *cache = codec::Ppm(Bytes::from(format!("{tag}{limit}")));
}

#[weir::function(reads, fresh = "2m", blocking)]
fn look(#[default(Duration::from_millis(200))] within: Duration) -> i64 {
    i64::from(within.subsec_millis())
}

#[weir::function(deferrable)]
async fn log(r#type: Text) -> Result<(), std::io::Error> {
    drop(r#type);
    Ok(())
}

#[weir::function(pure)]
fn first(list: &[Value], #[default(None)] or: Option<Value>) -> Option<Value> {
    list.first().cloned().or(or)
}

#[weir::function(pure)]
fn swap(pair: (Generic<'k'>, Generic<'v'>)) -> (Generic<'v'>, Generic<'k'>) {
    (pair.1, pair.0)
}

#[derive(Default)]
struct Deflate;

/// Marks of the block apply to all its functions.
#[weir::function(reads)]
impl Deflate {
    /// Compresses.
    fn compress(&mut self, chunk: Bytes) -> Bytes {
        chunk
    }

    #[weir::function(fresh = "500ms")]
    fn level(&self) -> u8 {
        9
    }
}

weir::library! {
    /// The functions of a blog.
    pub(crate) blog: codec::to_jpeg, put, look, log, first, swap, Deflate::compress, Deflate::level
}

fn shown(function: &Function) -> String {
    let signature = &function.signature;
    let mut text = format!("{}(", signature.path());
    for parameter in &signature.parameters {
        write!(text, "{:?} {}: {}", parameter.passing, parameter.name, parameter.ty).unwrap();
        if let Some(default) = &parameter.default {
            write!(text, " = {default}").unwrap();
        }
        text.push_str(", ");
    }
    let effects = &signature.effects;
    write!(text, ") -> {} | {:?}", signature.call_type(), effects.world).unwrap();
    for (name, given) in [
        ("deferrable", effects.deferrable),
        ("idempotent", effects.idempotent),
        ("blocking", effects.blocking),
        ("waits", effects.waits),
        ("total", effects.total),
    ] {
        text.push_str(if given { " " } else { "" });
        text.push_str(if given { name } else { "" });
    }
    if let Some(fresh) = effects.fresh_ns {
        write!(text, " fresh {fresh}").unwrap();
    }
    if let Some(state) = &signature.state {
        write!(text, " {:?} {}", state.mode, state.name).unwrap();
    }
    text
}

#[test]
fn a_signature_is_read_off_the_rust_function_and_its_marks() {
    let shown: Vec<String> = blog().functions.values().map(shown).collect();
    assert_eq!(
        shown.join("\n"),
        "blog.to_jpeg(Borrow image: image.Ppm, Value quality: Int = 85, ) -> Result(Bytes, Failure) | Pure idempotent\n\
         blog.store(Change cache: image.Ppm, Borrow key: Text, Value limit: Size = 64mb, Borrow tag: Text = a, ) \
         -> () | Writes idempotent\n\
         blog.look(Value within: Duration = 200ms, ) -> Int | Reads idempotent blocking fresh 120000000000\n\
         blog.log(Value type: Text, ) -> Result((), Failure) | Writes deferrable waits\n\
         blog.first(Borrow list: List(a), Value or: Option(a) = #0, ) -> Option(a) | Pure idempotent\n\
         blog.swap(Value pair: (k, v), ) -> (v, k) | Pure idempotent\n\
         blog.compress(Value chunk: Bytes, ) -> Bytes | Reads Write Deflate\n\
         blog.level() -> Int | Reads idempotent fresh 500000000 Read Deflate"
    );
}

#[test]
fn documentation_and_types_come_along() {
    let module = blog();
    assert_eq!(module.doc.as_str(), "The functions of a blog.");
    let doc = &module.functions["to_jpeg"].signature.doc;
    assert_eq!(doc.as_str(), "Compresses an image to JPEG.\n\nThe quality is 1 to 100.");
    assert_eq!(module.types["image.Ppm"].doc.as_str(), "A picture.");
}

mod other {
    /// Another type with the same name.
    #[derive(weir::Type)]
    #[weir(name = "image.Ppm")]
    pub(crate) struct Ppm {
        pub(crate) width: i64,
    }

    #[weir::function]
    pub(crate) fn put(ppm: Ppm) -> i64 {
        ppm.width
    }
}

#[derive(Default)]
struct Inflate;

#[weir::function]
impl Inflate {
    fn compress(&mut self) {}
}

weir::library!(pub(crate) twice: Deflate::compress, Inflate::compress);
weir::library!(pub(crate) album: other::put);
weir::library!(pub(crate) both: put, other::put);

#[test]
fn ambiguous_names_are_refused() {
    let message =
        |made: fn() -> weir::Module| *std::panic::catch_unwind(made).err().unwrap().downcast::<String>().unwrap();
    assert_eq!(
        message(twice),
        "two functions of `twice` are named `compress`: rename one by `#[weir::function(name = \"…\")]`"
    );
    assert_eq!(message(both), "two types of `both` are named `image.Ppm`: rename one by `#[weir(name = \"…\")]`");
    let mut library = weir::Library::default();
    library.add(blog()).unwrap();
    let error = library.add(album()).unwrap_err();
    assert_eq!(error.to_string(), "two types are named `image.Ppm`, one of them in `album`");
}

#[test]
fn a_generic_function_passes_values_through() {
    let mut frame = Frame::of([Value::list(vec![Value::text("a")]), Value::none()]);
    assert_eq!(common::given(frame.run(&blog().functions["first"])), Value::some(Value::text("a")));
}

/// Counts how often it is closed, and fails if told to.
struct Closed(std::sync::Arc<std::sync::atomic::AtomicUsize>, Option<&'static str>);

impl weir::Closing for Closed {
    fn close(&self) -> Result<(), Failure> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.1.map_or(Ok(()), |message| Err(Failure::function(message)))
    }
}

struct Other(Closed);

impl weir::Closing for Other {
    fn close(&self) -> Result<(), Failure> {
        self.0.close()
    }
}

#[test]
fn the_whole_environment_is_closed_and_the_first_failure_reported() {
    let closed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let mut environment = weir::Environment::default();
    environment.insert_closing(Closed(closed.clone(), Some("the disk is full")));
    environment.insert_closing(Other(Closed(closed.clone(), Some("later"))));
    assert!(environment.get::<Closed>().is_some());
    assert_eq!(environment.clone().close().unwrap_err().message.as_str(), "the disk is full");
    assert_eq!(closed.load(std::sync::atomic::Ordering::SeqCst), 2);
    assert!(weir::Environment::default().close().is_ok());
}

#[derive(weir::FunctionOptions)]
struct Style {
    width: u8,
}

#[weir::function]
fn padded(width: i64, #[options] style: Style) -> i64 {
    width + i64::from(style.width)
}

#[test]
fn two_parameters_of_one_name_are_refused() {
    let module = weir::Module::new("text", "").function(__weir_function_padded());
    let error = weir::Library::default().add(module).unwrap_err();
    assert_eq!(error.to_string(), "`text.padded` has two parameters named `width`");
}
