//! The standard library of functions and sources: files, HTTP, images, text, time, state, HTML, JSON, CSV, streams,
//! sockets, randomness and cryptography.
//!
//! Each module is plain Rust on top of a well-kept crate and can be used without Weir; only the attribute above a
//! function makes it a function of the language. [`library`] combines all modules.
//!
//! `files` works below a [`files::Root`] that the embedder puts into the library's environment.

mod bad_elements;
pub mod bytes;
pub mod client;
pub mod configuration;
mod connection_table;
pub mod crypto;
pub mod csv;
pub mod descriptors;
pub mod dns;
pub mod encoding;
pub mod failure;
pub mod files;
pub mod float;
#[cfg(test)]
mod generated_values;
pub mod html;
pub mod http;
pub mod http1;
pub mod image;
mod input;
pub mod int;
pub mod json;
pub mod jwt;
mod limited;
pub mod lines;
pub mod list;
pub mod log;
pub mod mail;
pub mod map;
mod named_texts;
pub mod network;
mod number_format;
pub mod output;
pub mod random;
pub mod regex;
mod room;
pub mod state;
pub mod stdio;
pub mod stream;
mod stream_source;
pub mod tables;
pub mod tcp;
pub mod text;
pub mod texts;
pub mod time;
mod time_limit;
mod trace_context;
pub mod udp;
mod units;
pub mod url;
pub mod uuid;

pub use limited::Limited;

/// Returns the standard modules, with their environment, except for the [`files::Root`] that a program with `files`
/// needs.
#[must_use]
pub fn library() -> weir::Library {
    let mut library = weir::Library::default();
    library.environment.insert_closing(output::Outputs::default());
    library.environment.insert(log::LogSettings::default());
    library.environment.insert(random::Randomness::default());
    library.environment.insert(uuid::LastUuid::default());
    library.environment.insert_placing(tables::TableStorage::default());
    let network = network::Network::default();
    library.environment.insert(client::Client::new(network.clone()));
    library.environment.insert(network);
    library.environment.insert(http::TestedServices::default());
    library.environment.insert(crypto::Secrets::default());
    library.environment.insert(weir::IssuedIds::new(crypto::is_issued));
    library.environment.insert(crypto::PasswordHashing::default());
    let modules = [
        http::http(),
        http::tested_service(),
        html::html(),
        files::files(),
        image::image(),
        text::text(),
        time::time().weir(include_str!("weir/time.weir")),
        in_weir("duration", include_str!("weir/duration.weir")),
        stream::stream(),
        bytes::bytes(),
        int::int().weir(include_str!("weir/int.weir")),
        float::float(),
        list::list().weir(include_str!("weir/list.weir")),
        map::map().weir(include_str!("weir/map.weir")),
        in_weir("path", include_str!("weir/path.weir")),
        url::url(),
        in_weir("option", include_str!("weir/option.weir")),
        in_weir("result", include_str!("weir/result.weir")),
        state::state(),
        tables::tables(),
        failure::failure(),
        csv::csv(),
        json::json(),
        stdio::stdio(),
        log::log(),
        mail::mail(),
        tcp::tcp(),
        tcp::tls(),
        dns::dns(),
        udp::udp(),
        http1::http1(),
        random::random(),
        regex::regex(),
        uuid::uuid(),
        encoding::base64(),
        encoding::hex(),
        crypto::crypto(),
        jwt::jwt(),
        client::client(),
    ];
    for module in modules {
        library.add(module).expect("the standard modules have different names");
    }
    library
}

/// Returns a module that is written in Weir, documented by the first line of its text.
fn in_weir(name: &str, text: &str) -> weir::Module {
    let doc = text.lines().next().map_or("", |line| line.trim_start_matches("//! "));
    weir::Module::new(name, doc).weir(text)
}
