//! The schemas in which a program looks for its tables: those that its first connection finds. The setting of a role or a database, and
//! the schema that has the name of the user, may change while the program runs, and each connection that is made then would have
//! others.

use std::sync::{Arc, OnceLock};

use tokio_postgres::{Client, Error, SimpleQueryMessage};

/// Sets the schemas that are there, as the search path has them, and returns them; sets nothing if there is none.
const KEEP: &str = "SELECT set_config('search_path', string_agg(quote_ident(name), ', ' ORDER BY place), false)
    FROM unnest(current_schemas(false)) WITH ORDINALITY AS found (name, place) HAVING count(*) > 0";

/// The search path of all connections of a program to a database, once there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchPath(Arc<OnceLock<String>>);

impl SearchPath {
    /// Gives a new connection the search path of the first one.
    pub(super) async fn set(&self, client: &Client) -> Result<(), Error> {
        if self.0.get().is_none() {
            let found = client.simple_query(KEEP).await?.into_iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            });
            // There is no schema yet.
            let Some(found) = found else { return Ok(()) };
            if self.0.get_or_init(|| found.clone()) == &found {
                return Ok(());
            }
        }
        match self.0.get() {
            Some(path) => client.batch_execute(&format!("SET search_path = {path}")).await,
            None => Ok(()),
        }
    }
}
