//! The authorities that the system trusts.

use rustls::RootCertStore;

/// Returns the certificates of the authorities that the system trusts (or `SSL_CERT_FILE` and `SSL_CERT_DIR` name). If
/// there are none, no server of TLS is trusted.
pub(crate) fn of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
