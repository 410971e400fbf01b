//! HTTP: answers as programs make them, and the source of `service … on http(…)`.
//!
//! A request finds its `routes`; its path, query, `fields` and body become `input`s of the route's types, or a 400 that names
//! what is wrong; a flow begins, and its [`Response`] is sent. The [`server`] knows nothing of all this.

mod fields;
mod input;
mod parameters;
mod query;
mod response;
mod routes;
pub mod server;
mod service;

use std::sync::Arc;

pub use response::{
    Response, ResponseError, bad_request, html, json, not_found, ok, redirect, status, text, with_header,
};

/// The module `http`: its functions, and the source of services.
pub(crate) fn http() -> weir::Module {
    response::http().source(parameters::signature(), Arc::new(service::Http))
}
