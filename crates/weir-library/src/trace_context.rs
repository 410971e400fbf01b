//! Trace contexts in header fields (W3C Trace Context): read from requests, and passed on to other services.
//!
//! 1. The server reads `traceparent` and `tracestate` of a request ([`received`]). A malformed `traceparent` is ignored, and
//!    `tracestate` with it; so is a malformed `tracestate`.
//! 2. A call of the client passes them on, with an identity of its own as the parent ([`pass_on`]). A flow without a trace begins
//!    one ([`current_or_begun`]), which all its calls and lines of the log have in common.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use weir::{FlowTrace, TraceContext};

use crate::random::buffered_bits;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Length of `traceparent` in the version of which the parts are known.
const PARENT_LENGTH: usize = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".len();
/// The flags that are known: the trace is recorded, and its identity is random.
const KNOWN_FLAGS: u8 = 0b11;
/// The flags of a trace that begins here. Its lines in the log are a record.
const BEGUN_FLAGS: u8 = 0b11;
/// Maximum number of members of `tracestate`, and maximum length of those that are passed on: what every participant of a
/// trace has to accept.
const STATE_MEMBERS_MAX: usize = 32;
const STATE_BYTES_MAX: usize = 512;
/// Maximum length of the key, and of the value, of a member of `tracestate`.
const PART_BYTES_MAX: usize = 256;

/// Returns the trace context that came with a request.
pub(crate) fn received(fields: &HeaderMap) -> FlowTrace {
    let parent = fields.get(TRACEPARENT);
    parent.and_then(|parent| context(parent, fields)).map_or_else(FlowTrace::default, FlowTrace::of)
}

/// Returns true if these fields may contain a trace context.
pub(crate) fn is_in(fields: &HeaderMap) -> bool {
    fields.contains_key(TRACEPARENT)
}

#[cold]
fn context(parent: &HeaderValue, fields: &HeaderMap) -> Option<TraceContext> {
    let is_only = fields.get_all(TRACEPARENT).iter().nth(1).is_none();
    let (trace_id, flags) = parsed(parent.to_str().ok().filter(|_| is_only)?)?;
    Some(TraceContext { trace_id, flags, state: state(fields).unwrap_or_default().into() })
}

/// Parses `traceparent`: a version, the identities of the trace and of the caller's part of it, and flags. A later version
/// may have more parts behind these.
fn parsed(parent: &str) -> Option<([u8; 16], u8)> {
    let (known, rest) = parent.split_at_checked(PARENT_LENGTH)?;
    let mut parts = known.split('-');
    let [version] = bytes(parts.next()?)?;
    let trace_id: [u8; 16] = bytes(parts.next()?)?;
    let parent_id: [u8; 8] = bytes(parts.next()?)?;
    let [flags] = bytes(parts.next()?)?;
    let has_valid_end = rest.is_empty() || (version > 0 && rest.starts_with('-'));
    let is_valid = version < u8::MAX && has_valid_end && parts.next().is_none();
    (is_valid && trace_id != [0; 16] && parent_id != [0; 8]).then_some((trace_id, flags & KNOWN_FLAGS))
}

/// Returns the bytes that a text writes in hexadecimal digits, which are in lower case.
fn bytes<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    let is_digits = text.len() == 2 * COUNT && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut bytes = [0; COUNT];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    is_digits.then_some(bytes)
}

/// Returns `tracestate` as it is passed on; `None` if it is malformed. If it is too long, the last members are left out.
fn state(fields: &HeaderMap) -> Option<String> {
    let mut passed_on = String::new();
    let (mut keys, mut is_full) = (Vec::new(), false);
    for line in fields.get_all(TRACESTATE) {
        for member in line.to_str().ok()?.split(',').map(|member| member.trim_matches([' ', '\t'])) {
            if member.is_empty() {
                continue;
            }
            let (key, value) = member.split_once('=')?;
            if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == STATE_MEMBERS_MAX {
                return None;
            }
            keys.push(key);
            is_full |= passed_on.len() + member.len() + usize::from(!passed_on.is_empty()) > STATE_BYTES_MAX;
            if !is_full {
                passed_on += if passed_on.is_empty() { "" } else { "," };
                passed_on += member;
            }
        }
    }
    Some(passed_on)
}

fn is_key(key: &str) -> bool {
    let is_part = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let begins = key.starts_with(|char: char| char.is_ascii_lowercase() || char.is_ascii_digit());
    begins && key.len() <= PART_BYTES_MAX && key.bytes().all(is_part)
}

fn is_value(value: &str) -> bool {
    let is_part = |byte| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    !value.is_empty() && value.len() <= PART_BYTES_MAX && value.bytes().all(is_part)
}

/// Returns the trace context of the flow that runs on this thread, which begins a trace if it has none; `None` if the
/// operating system has no random numbers.
pub(crate) fn current_or_begun() -> Option<Arc<TraceContext>> {
    FlowTrace::current().or_else(|| {
        let context = TraceContext { trace_id: random_id()?, flags: BEGUN_FLAGS, state: Arc::default() };
        Some(FlowTrace::begin(context))
    })
}

/// Adds the trace context of the flow that runs on this thread to the header of a request, unless the program has set it.
pub(crate) fn pass_on(fields: &mut HeaderMap) {
    if fields.contains_key(TRACEPARENT) || fields.contains_key(TRACESTATE) {
        return;
    }
    let Some(context) = current_or_begun() else { return };
    let Some(parent_id) = random_id::<8>() else { return };
    if let Ok(parent) = HeaderValue::from_bytes(&traceparent(&context, parent_id)) {
        fields.insert(TRACEPARENT, parent);
    }
    if !context.state.is_empty()
        && let Ok(state) = HeaderValue::from_str(&context.state)
    {
        fields.insert(TRACESTATE, state);
    }
}

/// Writes `traceparent` for a request that this part of the trace sends.
fn traceparent(context: &TraceContext, parent_id: [u8; 8]) -> [u8; PARENT_LENGTH] {
    let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
    HEXLOWER.encode_mut(&context.trace_id, &mut text[3..35]);
    HEXLOWER.encode_mut(&parent_id, &mut text[36..52]);
    HEXLOWER.encode_mut(&[context.flags], &mut text[53..]);
    text
}

/// Returns a random identity, which is not zero.
fn random_id<const COUNT: usize>() -> Option<[u8; COUNT]> {
    let mut id = [0; COUNT];
    for part in id.chunks_mut(size_of::<u64>()) {
        part.copy_from_slice(&buffered_bits().ok()?.to_le_bytes()[..part.len()]);
    }
    id[COUNT - 1] |= u8::from(id == [0; COUNT]);
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn fields(lines: &[(HeaderName, &str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        fields
    }

    fn received_state(states: &[&str]) -> String {
        let states = states.iter().map(|state| (TRACESTATE, *state));
        let lines: Vec<_> = [(TRACEPARENT, VALID)].into_iter().chain(states).collect();
        received(&fields(&lines)).context().unwrap().state.to_string()
    }

    #[test]
    fn a_valid_parent_names_the_trace() {
        let later = format!("cc{}", &VALID[2..]);
        for parent in [VALID, &later, &format!("{later}-what-comes-later")] {
            let trace = received(&fields(&[(TRACEPARENT, parent)]));
            let context = trace.context().unwrap();
            assert_eq!((&*context.trace_id(), context.flags), ("4bf92f3577b34da6a3ce929d0e0e4736", 1), "{parent}");
        }
        let flags = received(&fields(&[(TRACEPARENT, &VALID.replace("-01", "-fe"))]));
        assert_eq!(flags.context().unwrap().flags, 2);
    }

    #[test]
    fn a_malformed_parent_is_ignored_and_the_state_with_it() {
        let mut wrong: Vec<String> = (0..VALID.len()).map(|length| VALID[..length].to_owned()).collect();
        wrong.extend(["-4bf", "ff", "0x", "00 "].map(|begin| format!("{begin}{}", &VALID[begin.len().min(2)..])));
        wrong.extend([VALID.to_uppercase(), format!("{VALID}-00"), format!("{VALID} "), format!("cc{}.", &VALID[2..])]);
        wrong.push(VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)));
        wrong.push(VALID.replace("00f067aa0ba902b7", &"0".repeat(16)));
        wrong.push(VALID.replace("-01", "_01"));
        wrong.push(VALID.replace("4bf92f", "4bfé2"));
        for parent in wrong {
            let found = received(&fields(&[(TRACEPARENT, &parent), (TRACESTATE, "a=b")]));
            assert_eq!(found.context(), None, "{parent}");
        }
        assert_eq!(received(&fields(&[(TRACEPARENT, VALID), (TRACEPARENT, VALID)])).context(), None);
        assert_eq!(received(&fields(&[(TRACESTATE, "a=b")])).context(), None);
    }

    #[test]
    fn the_state_is_passed_on_unless_it_is_malformed() {
        assert_eq!(received_state(&["a=1,b@c=2 3 ", "\t, d_-*/=~"]), "a=1,b@c=2 3,d_-*/=~");
        let long = "x".repeat(PART_BYTES_MAX + 1);
        let many: Vec<String> = (0..=STATE_MEMBERS_MAX).map(|n| format!("k{n}=v")).collect();
        for wrong in ["a", "=1", "a=", "A=1", "a=1,a=2", "a=b=c", "a=é", &many.join(","), &format!("a={long}")] {
            assert_eq!(received_state(&["z=1", wrong]), "", "{wrong}");
        }
    }

    #[test]
    fn of_a_long_state_the_last_members_are_left_out() {
        let value = "x".repeat(200);
        let state = format!("a={value},b={value},c={value},d=1");
        assert_eq!(received_state(&[&state]), format!("a={value},b={value}"));
    }

    #[test]
    fn requests_of_a_flow_have_one_trace_and_parents_of_their_own() {
        let mut flow = received(&fields(&[(TRACEPARENT, VALID), (TRACESTATE, "a=b")]));
        let _entered = flow.enter();
        let (mut first, mut second) = (HeaderMap::new(), HeaderMap::new());
        pass_on(&mut first);
        pass_on(&mut second);
        let parents = [&first, &second].map(|fields| fields[TRACEPARENT].to_str().unwrap());
        for parent in parents {
            assert!(parent.starts_with(&VALID[..36]) && parent.ends_with("-01") && parent != VALID, "{parent}");
            assert!(parsed(parent).is_some());
        }
        assert_ne!(parents[0], parents[1]);
        assert_eq!(first[TRACESTATE], "a=b");
        let mut own = fields(&[(TRACEPARENT, "own")]);
        pass_on(&mut own);
        assert_eq!((own.len(), &own[TRACEPARENT]), (1, &HeaderValue::from_static("own")));
    }

    #[test]
    fn a_flow_without_a_trace_begins_one_and_keeps_it() {
        let mut flow = FlowTrace::default();
        let sent = [(); 2].map(|()| {
            let _entered = flow.enter();
            let mut sent = HeaderMap::new();
            pass_on(&mut sent);
            parsed(sent[TRACEPARENT].to_str().unwrap()).unwrap()
        });
        assert_eq!(sent[0], sent[1]);
        assert_eq!((sent[0].1, flow.context().unwrap().trace_id), (BEGUN_FLAGS, sent[0].0));
    }
}
