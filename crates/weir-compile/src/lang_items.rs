//! Lang items: the items of the library that the compiler knows by name.

/// The functions that format interpolated values.
pub(crate) const FORMATS: [&str; 4] = [FORMAT_INT, FORMAT_FLOAT, PAD_START, PAD_END];
pub(crate) const FORMAT_INT: &str = "int.format";
pub(crate) const FORMAT_FLOAT: &str = "float.format";
pub(crate) const PAD_START: &str = "text.pad_start";
pub(crate) const PAD_END: &str = "text.pad_end";

/// The module whose functions every shared value has.
pub const STATE: &str = "state";

/// The functions that add, each with its type parameter that only types with a sum can stand for.
pub(crate) const ADDING: [(&str, &str); 2] = [("state.add", "a"), ("state.add_at", "v")];

/// The function that returns the current value of a shared value.
pub(crate) const SHARED_READ: &str = "state.read";

/// The function that returns the value of a `secret`, and its type.
pub(crate) const CONFIGURED_SECRET: &str = "crypto.configured";
pub(crate) const SECRET: &str = "crypto.Secret";

/// The module of the statements on tables. Programs call them through a table only.
pub(crate) const TABLES: &str = "tables";

/// Returns whether a constraint is that of a database: of the program's own one, which is called [`TABLES`], or of an existing one,
/// which has the name of its first table behind that. No program can name a constraint in this way, because it cannot name the module.
pub(crate) fn is_database(constraint: &str) -> bool {
    constraint == TABLES || existing_database(constraint).is_some()
}

/// Returns the first table of the existing database whose constraint this is.
pub(crate) fn existing_database(constraint: &str) -> Option<&str> {
    constraint.strip_prefix(TABLES)?.strip_prefix('.')
}

/// The function that begins a transaction.
pub(crate) const BEGIN: &str = "tables.begin";
/// The functions that end a transaction, and the one that waits for a commit that was placed.
pub(crate) const COMMIT: &str = "tables.commit";
pub(crate) const PLACE_COMMIT: &str = "tables.place_commit";
pub(crate) const COMMITTED: &str = "tables.committed";
pub(crate) const ROLL_BACK: &str = "tables.roll_back";
/// The function that waits before a further attempt of a `retry` with a `backoff`.
pub(crate) const WAIT_FOR_ATTEMPT: &str = "time.wait_for_attempt";
/// The function that returns the kind of a failure.
pub(crate) const FAILURE_KIND: &str = "failure.kind";
/// The function that waits until commits are durable.
pub(crate) const SETTLE: &str = "tables.settle";

/// The type of tables that a query is joined with.
pub(crate) const JOINED: &str = "tables.Joined";
/// The type of a table.
pub(crate) const TABLE: &str = "tables.Table";

/// The module of templates, and the type of their values, which programs name without the module.
pub(crate) const HTML_MODULE: &str = "html";
pub(crate) const HTML: &str = "Html";

/// The functions that set cookies.
pub(crate) const WITH_COOKIE: &str = "http.with_cookie";
pub(crate) const WITH_ENCRYPTED_COOKIE: &str = "http.with_encrypted_cookie";
/// The source of services on HTTP, the type of a body that a flow reads, and the function that reads it.
pub(crate) const HTTP_SOURCE: &str = "http.http";
pub(crate) const REQUEST_BODY: &str = "http.RequestBody";
pub(crate) const READ_BODY: &str = "http.read_body";

/// The function that removes a cookie.
pub(crate) const WITHOUT_COOKIE: &str = "http.without_cookie";

/// The module whose functions tests call on services, the type of what they return, and the type of the response.
pub(crate) const SERVICE: &str = "service";
pub(crate) const SERVICE_REQUEST: &str = "service.Request";
pub(crate) const CLIENT_RESPONSE: &str = "client.Response";

/// The functions that create a value from texts with names, which must be a record or a map from texts.
pub(crate) const READERS_OF_NAMED_TEXTS: [&str; 3] = ["csv.decode", "csv.decode_row", "html.decode_form"];

/// The functions that write a list of records as a table.
pub(crate) const WRITERS_OF_RECORDS: [&str; 1] = ["csv.encode"];

/// The type of a part of a form, such as a file.
pub(crate) const FORM_PART: &str = "html.Part";

/// The type of arbitrary JSON. It is opaque, and yet valid wherever JSON is.
pub(crate) const JSON_VALUE: &str = "json.Value";
