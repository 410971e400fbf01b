//! HTTP: responses that programs create, and the source of `service … on http(…)`.
//!
//! A request is matched against the `routes`; its path, query, header `fields` and body are parsed as `input`s of the
//! route's types, or answered with a 400 that names what is wrong. Then a flow begins, and its [`Response`] is sent.
//! The [`server`] is independent of all this.

mod argument_faults;
mod client_address;
mod cookies;
mod cross_origin;
mod cross_site;
mod encrypted_cookies;
mod fields;
mod flow_handler;
mod form_body;
mod health;
mod http2_fields;
mod input;
mod max_age;
mod method_routes;
mod parameters;
mod problem_details;
mod query;
mod representation;
mod request_body;
mod request_fields;
mod request_log;
mod request_policy;
mod request_rules;
mod response;
mod routes;
pub mod server;
mod service;
mod static_files;
mod testing;
mod type_description;

use std::sync::Arc;

pub use cookies::{CookieError, with_cookie, with_encrypted_cookie, without_cookie};
pub use request_body::{RequestBody, read_body};
pub use response::{
    Response, ResponseError, bad_request, html, json, not_found, ok, problem, redirect, status, text, with_header,
};
pub use static_files::{compressed, file};
pub(crate) use testing::service as tested_service;
pub use testing::{RouteFailure, RouteFailures, ServiceRequest, TestedServices};

/// Builds the module `http`: its functions, and the source of services.
pub(crate) fn http() -> weir::Module {
    functions::http().source(parameters::signature(), Arc::new(service::Http))
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// Responses to requests, and services on HTTP.
        pub(crate) http: super::response::ok, super::response::text, super::response::html, super::response::json,
            super::response::bad_request, super::response::not_found, super::response::redirect,
            super::response::status, super::response::with_header, super::response::problem,
            super::static_files::file, super::static_files::compressed, super::cookies::with_cookie, super::cookies::with_encrypted_cookie,
            super::cookies::without_cookie, super::request_body::read_body
    }
}
