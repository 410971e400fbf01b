//! HTTP: responses that programs create, and the source of `service … on http(…)`.
//!
//! A request is matched against the `routes`; its path, query, header `fields` and body are parsed as `input`s of the
//! route's types, or answered with a 400 that names what is wrong. Then a flow begins, and its [`Response`] is sent.
//! The [`server`] is independent of all this.

mod cookies;
mod cross_site;
mod fields;
mod input;
mod parameters;
mod problem;
mod query;
mod response;
mod routes;
pub mod server;
mod service;

use std::sync::Arc;

pub use cookies::{CookieError, with_cookie, without_cookie};
pub use problem::problem;
pub use response::{
    Response, ResponseError, bad_request, html, json, not_found, ok, redirect, status, text, with_header,
};

/// Builds the module `http`: its functions, and the source of services.
pub(crate) fn http() -> weir::Module {
    response::http().source(parameters::signature(), Arc::new(service::Http))
}
