//! Hashes of passwords with Argon2id (RFC 9106).
//!
//! A hash takes time and memory by design. 1. It is computed by one of a few threads of its own, one for each processor
//! ([`PasswordHashing`]), so that logins cannot take all memory; other jobs wait in order. These threads stay, because an
//! allocator keeps freed blocks of this size for the thread that had them. 2. A job whose caller was cancelled before it
//! begins is skipped. 3. A stored hash that demands more memory, passes or lanes than the limits below is refused before any is allocated.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use tokio::sync::oneshot;
use weir::{Failure, FailureKind, Text};

use crate::random::system_bytes;

/// Memory of a new hash in KiB, and the number of passes over it: the first choice of OWASP's Password Storage Cheat
/// Sheet.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// Limits on the parameters of a stored hash.
const MEMORY_KIB_MAX: u32 = 64 * 1024;
const PASSES_MAX: u32 = 10;
const LANES_MAX: u32 = 4;
/// Maximum length of a password in bytes.
const PASSWORD_BYTES_MAX: usize = 1024;
const SALT_BYTES: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// The threads that hash passwords: one for each processor, each for at most 64 MiB. They start with the first job.
#[derive(Debug, Default)]
pub struct PasswordHashing(OnceLock<Sender<Job>>);

impl PasswordHashing {
    /// Runs a job on one of the threads. If the caller is cancelled, a job that has begun still ends.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !answer.is_closed() {
                // Nobody waits for the answer of a cancelled caller.
                let _ = answer.send(job());
            }
        });
        let stopped = || Failure::function("the password was not hashed: its thread has stopped");
        self.0.get_or_init(start_threads).send(job).map_err(|_| stopped())?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }
}

/// Starts the threads, which end when the returned sender is dropped.
fn start_threads() -> Sender<Job> {
    let (jobs, received) = channel();
    let received = Arc::new(Mutex::new(received));
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let received = Arc::clone(&received);
        // Without a thread the receiver is dropped, and each job fails.
        let _ = thread::Builder::new().name("weir-password".to_owned()).spawn(move || run_jobs(&received));
    }
    jobs
}

fn run_jobs(received: &Mutex<Receiver<Job>>) {
    loop {
        let next = received.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        // A panic drops the sender of the answer, so that its caller fails.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

/// Returns a hash of the password to store (Argon2id with a random salt, 19 MiB and two passes), as a text that
/// contains its parameters: `$argon2id$v=19$m=19456,t=2,p=1$…`.
///
/// # Errors
/// Fails if the password is longer than 1,024 bytes.
#[weir::function(reads)]
pub async fn hash_password(#[environment] hashing: &PasswordHashing, password: &str) -> Result<String, Failure> {
    let password = limited(password)?;
    hashing.run(move || hashed(&password)).await
}

/// Returns `true` if the password has this hash. Without a hash, because nobody has the name that was entered, it takes as long and
/// returns `false`, so that the time of the answer does not disclose which names exist.
///
/// # Errors
/// Fails if the text is not a hash of Argon2id, or demands more than 64 MiB, 10 passes or 4 lanes.
#[weir::function(reads)]
pub async fn password_matches(
    #[environment] hashing: &PasswordHashing,
    password: &str,
    hash: Option<Text>,
) -> Result<bool, Failure> {
    // A password that is too long has no hash; it is as wrong as any other.
    let Ok(password) = limited(password) else { return Ok(false) };
    let Some(hash) = hash else { return hashing.run(move || hashed(&password).map(|_| false)).await };
    let hash = checked(&hash)?;
    let verified = move || Ok(Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
    hashing.run(verified).await
}

fn limited(password: &str) -> Result<String, Failure> {
    if password.len() > PASSWORD_BYTES_MAX {
        let message = format!("the password has more than {PASSWORD_BYTES_MAX} bytes");
        return Err(Failure::new(FailureKind::Limit, message));
    }
    Ok(password.to_owned())
}

fn hashed(password: &str) -> Result<String, Failure> {
    let mut salt = [0; SALT_BYTES];
    system_bytes(&mut salt)?;
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).expect("the constants are in range");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    Ok(argon2.hash_password_with_salt(password.as_bytes(), &salt)?.to_string())
}

/// Parses a stored hash, within the limits.
fn checked(hash: &str) -> Result<PasswordHash, Failure> {
    let hash = PasswordHash::new(hash).map_err(|_| Failure::argument("not a password hash"))?;
    if Algorithm::try_from(hash.algorithm.as_str()) != Ok(Algorithm::Argon2id) || hash.hash.is_none() {
        return Err(Failure::argument("not a password hash of Argon2id"));
    }
    let params =
        Params::try_from(&hash).map_err(|_| Failure::argument("the parameters of the password hash are wrong"))?;
    if params.m_cost() > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX || params.p_cost() > LANES_MAX {
        let message = format!(
            "the password hash demands m={} (KiB), t={}, p={}; at most m={MEMORY_KIB_MAX}, t={PASSES_MAX}, \
             p={LANES_MAX} is computed",
            params.m_cost(),
            params.t_cost(),
            params.p_cost()
        );
        return Err(Failure::new(FailureKind::Limit, message));
    }
    Ok(hash)
}
