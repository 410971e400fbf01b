//! Checks that cookies are read as they are set. A service can trust what it has encrypted, and not what a client sends, so that
//! a cookie which is set in one way and read in the other lets everybody in, or nobody.

use weir_host::{ParameterFrom, Text, Type, Value};
use weir_ir::expr::{Atom, Block, Op, Program};
use weir_ir::prim::Prim;
use weir_ir::program::Var;
use weir_syntax::ast::{Item, ItemKind, ParameterLocation, RouteParameter};
use weir_syntax::{Code, Diagnostic, Span};

use crate::context::CheckContext;
use crate::lang_items::{WITH_COOKIE, WITH_ENCRYPTED_COOKIE, WITHOUT_COOKIE};
use crate::source_arguments::{known_argument, source_call};
use crate::typed_tree::{EntryInfo, TypedTree};

/// The argument of `http` with the keys of encrypted cookies.
const KEYS: &str = "cookie_keys";

/// A call that sets a cookie.
struct SetCookie {
    /// `None` if it is computed.
    name: Option<Text>,
    is_encrypted: bool,
    /// The type of an encrypted value.
    ty: Option<Type>,
    span: Span,
}

/// A parameter of a route that is a cookie.
struct ReadCookie<'a> {
    name: &'a str,
    is_encrypted: bool,
    ty: Option<Type>,
    span: Span,
}

/// Reports cookies that are set in one way and read in another, and calls that encrypt cookies without a key.
pub(crate) fn check(program: &Program, context: &mut CheckContext<'_>, typed: &TypedTree) {
    let (mut set, mut read) = (Vec::new(), Vec::new());
    for (entry, lowered) in typed.entries().iter().zip(&program.entries) {
        let first = set.len();
        lowered.flows.iter().for_each(|flow| set_by(&flow.body, context, &mut set));
        lowered.flows.iter().for_each(|flow| check_constants(&flow.body, context));
        if has_no_keys(context, typed, entry) {
            let keyless = set[first..].iter().filter(|cookie: &&SetCookie| cookie.is_encrypted);
            let keyless: Vec<Span> = keyless.map(|cookie| cookie.span).collect();
            keyless.into_iter().for_each(|span| context.report_once(without_keys(&lowered.name, span)));
        }
        let Some(item) = context.tree().items.get(entry.item) else { continue };
        for parameter in parameters(item) {
            let Some(is_encrypted) = kind_of(parameter.place) else { continue };
            let name = parameter.parameter.name.as_str();
            let flows = lowered.flows.iter().filter_map(|flow| Some((flow, flow.route.as_ref()?)));
            let mut variables = flows.flat_map(|(flow, route)| route.parameters.iter().zip(&flow.parameters));
            let found = variables.find(|(of, _)| of.name.as_str() == name && of.from == ParameterFrom::EncryptedCookie);
            let ty = found.map(|(_, variable)| variable.ty.clone());
            read.push(ReadCookie { name, is_encrypted, ty, span: parameter.parameter.span });
        }
    }
    for cookie in &read {
        compare(cookie, &set, context);
    }
    let unread = set.iter().filter(|cookie| cookie.is_encrypted && has_valid_name(cookie) && !is_read(cookie, &read));
    unread.for_each(|cookie| context.report_once(never_read(cookie)));
}

/// Returns `true` if a cookie is encrypted, and `None` for a parameter that is no cookie which a response can set: those are named
/// `__Host-user`, and never `user` like an `unprefixed_cookie`.
fn kind_of(place: ParameterLocation) -> Option<bool> {
    match place {
        ParameterLocation::EncryptedCookie => Some(true),
        ParameterLocation::Cookie => Some(false),
        _ => None,
    }
}

fn parameters(item: &Item) -> Vec<&RouteParameter> {
    let ItemKind::Service(service) = &item.kind else { return Vec::new() };
    let of_befores = service.befores().flat_map(|before| &before.parameters);
    of_befores.chain(service.routes().flat_map(|route| &route.parameters)).collect()
}

/// Reports calls that fail each time, because the constant name or age of their cookie is invalid.
fn check_constants(body: &Block, context: &mut CheckContext<'_>) {
    let (mut ages, mut found) = (Vec::new(), Vec::new());
    body.each_binding(&mut |binding| {
        let Op::Call(call) = &binding.op else {
            ages.extend(constant_age(&binding.op, &ages).map(|age| (binding.bound.var, age)));
            return;
        };
        if [WITH_COOKIE, WITH_ENCRYPTED_COOKIE, WITHOUT_COOKIE].contains(&call.function.as_str()) {
            let name = call.arguments.get(1).and_then(name_fault);
            let age = call.arguments.get(3).and_then(|age| age_fault(known_age(age, &ages)?));
            let span = context.span(binding.origin);
            found.extend(name.into_iter().chain(age).map(|fault| fault.at(span, "fails each time")));
        }
    });
    found.into_iter().for_each(|diagnostic| context.report_once(diagnostic));
}

/// Returns the diagnostic of a name that no cookie can have, as the functions of the library refuse it.
fn name_fault(name: &Atom) -> Option<Diagnostic> {
    let Atom::Value(Value::Text(name)) = name else { return None };
    if is_cookie_name(name) {
        return None;
    }
    let message = format!("{:?} is not the name of a cookie", name.as_str());
    Some(Diagnostic::new(Code::InvalidCookie, message).hint("a name consists of ASCII letters, digits, `_` and `-`"))
}

fn is_cookie_name(name: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.bytes().all(is_name)
}

/// Returns the diagnostic of an age, in nanoseconds, before the cookie is made.
fn age_fault(age: i64) -> Option<Diagnostic> {
    let message = || format!("the `max_age` of a cookie cannot be negative, but is {}", Value::Duration(age));
    (age < 0).then(|| Diagnostic::new(Code::InvalidCookie, message()).hint("`http.without_cookie` removes a cookie"))
}

/// Returns the duration that an operation on constants results in, such as that of `-5s` or `Some(-5s)`.
fn constant_age(op: &Op, ages: &[(Var, i64)]) -> Option<i64> {
    match op {
        Op::Prim(Prim::Negate, operands) => known_age(operands.first()?, ages)?.checked_neg(),
        Op::Prim(Prim::Variant(_), operands) => known_age(operands.first()?, ages),
        Op::Prim(Prim::Subtract, operands) => {
            known_age(operands.first()?, ages)?.checked_sub(known_age(operands.get(1)?, ages)?)
        }
        _ => None,
    }
}

/// Returns the nanoseconds of a duration, or of one in an `Option`, that is known.
fn known_age(age: &Atom, ages: &[(Var, i64)]) -> Option<i64> {
    match age {
        Atom::Value(Value::Duration(nanoseconds)) => Some(*nanoseconds),
        Atom::Value(Value::Variant(_, Some(payload))) => match payload.first() {
            Some(Value::Duration(nanoseconds)) => Some(*nanoseconds),
            _ => None,
        },
        Atom::Var(var) => ages.iter().find(|(known, _)| known == var).map(|(_, age)| *age),
        _ => None,
    }
}

/// Adds the cookies that a body sets.
fn set_by(body: &Block, context: &CheckContext<'_>, set: &mut Vec<SetCookie>) {
    let mut pairs = Vec::new();
    body.each_binding(&mut |binding| {
        pairs.push((binding.bound.var, &binding.bound.ty));
        let Op::Call(call) = &binding.op else { return };
        let is_encrypted = call.function.as_str() == WITH_ENCRYPTED_COOKIE;
        if !is_encrypted && call.function.as_str() != WITH_COOKIE {
            return;
        }
        let name = match call.arguments.get(1) {
            Some(Atom::Value(Value::Text(name))) => Some(name.clone()),
            _ => None,
        };
        let ty = match call.arguments.get(2) {
            Some(Atom::Var(var)) if is_encrypted => value_type(pairs.iter().find(|(bound, _)| bound == var)),
            _ => None,
        };
        set.push(SetCookie { name, is_encrypted, ty, span: context.span(binding.origin) });
    });
}

/// Returns the type of a value that is passed with its type.
fn value_type(pair: Option<&(Var, &Type)>) -> Option<Type> {
    match pair?.1 {
        Type::Tuple(parts) => parts.first().cloned(),
        _ => None,
    }
}

/// Returns `true` if a service states no keys.
fn has_no_keys(context: &CheckContext<'_>, typed: &TypedTree, entry: &EntryInfo) -> bool {
    let keys = || {
        let (module, name) = entry.source.rsplit_once('.')?;
        let (signature, _) = context.library.modules.get(module)?.sources.get(name)?;
        let call = source_call(context.tree().items.get(entry.item)?)?;
        let index = signature.parameters.iter().position(|parameter| parameter.name.as_str() == KEYS)?;
        known_argument(signature, typed, entry, call, index)
    };
    matches!(keys(), Some((Value::List(keys), _)) if keys.is_empty())
}

fn without_keys(service: &str, span: Span) -> Diagnostic {
    Diagnostic::new(
        Code::SourceArgument,
        format!("`{service}` has no `cookie_keys`, with which it could encrypt this cookie"),
    )
    .at(span, "is encrypted by the service")
    .hint("declare `secret cookie_key: Bytes`, and write `cookie_keys: [cookie_key]` in the arguments of the service")
}

/// Reports a cookie that is read in another way than it is set.
fn compare(read: &ReadCookie<'_>, set: &[SetCookie], context: &mut CheckContext<'_>) {
    let mut same_name = set.iter().filter(|cookie| cookie.name.as_deref() == Some(read.name));
    if let Some(other) = same_name.clone().find(|cookie| cookie.is_encrypted != read.is_encrypted) {
        context.report_once(other_kind(read, other.span));
    } else if read.is_encrypted && same_name.clone().next().is_none() {
        let mut encrypted = set.iter().filter(|cookie| cookie.is_encrypted).peekable();
        if let Some(first) = encrypted.peek().map(|cookie| cookie.span)
            && encrypted.all(|cookie| cookie.name.is_some())
        {
            let message = format!("no response sets the encrypted cookie `{}`", read.name);
            let diagnostic = Diagnostic::new(Code::UnpairedCookie, message)
                .at(read.span, "always missing, unless another program with the same keys sets it")
                .because(first, "sets another one");
            context.report_once(diagnostic);
        }
    } else if let Some(other) = same_name.find(|cookie| !is_same_type(cookie.ty.as_ref(), read.ty.as_ref())) {
        let shown = |ty: &Option<Type>| ty.as_ref().map_or_else(String::new, |ty| format!("`{}`", inner(ty)));
        let message =
            format!("the cookie `{}` is set as {} and read as {}", read.name, shown(&other.ty), shown(&read.ty));
        let diagnostic = Diagnostic::new(Code::UnpairedCookie, message)
            .at(read.span, "counts as missing if it has another type")
            .because(other.span, "set here");
        context.report_once(diagnostic);
    }
}

/// Returns `true` unless both types are known and differ.
fn is_same_type(set: Option<&Type>, read: Option<&Type>) -> bool {
    set.zip(read).is_none_or(|(set, read)| inner(set) == inner(read))
}

fn inner(ty: &Type) -> &Type {
    if let Type::Option(some) = ty { some } else { ty }
}

fn other_kind(read: &ReadCookie<'_>, set: Span) -> Diagnostic {
    let name = read.name;
    let (message, hint) = match read.is_encrypted {
        true => (
            format!("the cookie `{name}` is set without encryption, and read as an encrypted one"),
            "set it with `http.with_encrypted_cookie`".to_owned(),
        ),
        false => (
            format!("the cookie `{name}` is set encrypted, and read as what any client can send"),
            format!("write `encrypted_cookie {name}`"),
        ),
    };
    let label = if read.is_encrypted { "always missing" } else { "anybody can make this cookie" };
    Diagnostic::new(Code::CookieKind, message).at(read.span, label).because(set, "set here").hint(hint)
}

fn is_read(set: &SetCookie, read: &[ReadCookie<'_>]) -> bool {
    set.name.as_deref().is_none_or(|name| read.iter().any(|cookie| cookie.name == name))
}

/// Returns `false` if the call that sets a cookie fails each time, which is reported already.
fn has_valid_name(set: &SetCookie) -> bool {
    set.name.as_deref().is_none_or(is_cookie_name)
}

fn never_read(set: &SetCookie) -> Diagnostic {
    let name = set.name.as_deref().unwrap_or_default();
    Diagnostic::new(Code::UnpairedCookie, format!("no route reads the encrypted cookie `{name}`"))
        .at(set.span, "set for nothing, unless another program with the same keys reads it")
        .hint("a route reads a cookie by a parameter of the same name, `encrypted_cookie name: …`")
}
