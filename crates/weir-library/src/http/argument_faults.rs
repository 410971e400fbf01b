//! The arguments of `http(…)` that a service would refuse at its start, for the compiler.

use std::sync::Arc;

use weir::{Failure, Route, Value};

use super::parameters;
use super::routes::Routes;

/// A check of arguments, some of which may have been replaced by their defaults.
type ArgumentCheck = fn(&[Value], &Arc<[Route]>) -> Result<(), Failure>;

/// The checks, each with the parameters that it reads. The first one is said to be at fault.
const CHECKS: [(&[&str], ArgumentCheck); 6] = [
    (
        &["allowed_origins", "allowed_credentials", "allowed_headers", "exposed_headers", "preflight_max_age"],
        |arguments, _| parameters::cross_origin(arguments).map(drop),
    ),
    (&["trusted_proxies"], |arguments, _| parameters::trusted_proxies(arguments).map(drop)),
    (&["headers"], |arguments, _| parameters::headers(arguments).map(drop)),
    (&["health"], |arguments, routes| {
        let health = parameters::health(arguments)?;
        // What is wrong with routes is no fault of an argument.
        Routes::new(Arc::clone(routes)).map_or(Ok(()), |routes| routes.leave_to_server(health.path()))
    }),
    (&["cookie_keys"], |_, routes| Routes::new(Arc::clone(routes)).map_or(Ok(()), |routes| routes.need_no_keys())),
    (&["shutdown_delay"], |arguments, _| parameters::shutdown_delay(arguments).map(drop)),
];

/// Returns the parameters, by index, whose arguments a service would refuse, with the reasons. `None` stands for an argument
/// that is not known before the start; what depends on it is not checked.
pub(super) fn faults(known: &[Option<Value>], routes: &Arc<[Route]>) -> Vec<(usize, Failure)> {
    let parameters = parameters::signature().parameters;
    let index = |name: &str| parameters.iter().position(|parameter| &*parameter.name == name);
    let defaults: Vec<Value> = parameters.iter().map(|of| of.default.clone().unwrap_or(Value::Int(0))).collect();
    let known_of = |index: usize| known.get(index).and_then(Option::as_ref);
    let checks = CHECKS.iter().map(|(names, check)| (*names, *check)).chain(parameters::LIMIT_NAMES.iter().map(
        |name| -> (&[&str], ArgumentCheck) { (std::slice::from_ref(name), |all, _| parameters::limits(all).map(drop)) },
    ));
    let faults = checks.filter_map(|(names, check)| {
        let mut arguments = defaults.clone();
        for name in names {
            let at = index(name)?;
            arguments[at] = known_of(at)?.clone();
        }
        Some((index(names.first()?)?, check(&arguments, routes).err()?))
    });
    faults.collect()
}
