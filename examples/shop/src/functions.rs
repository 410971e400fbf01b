//! Host functions of the program `main.weir`. Those of a slice answer many calls by one query.

use weir::Failure;

use crate::store::{CURRENCIES, PRODUCTS, Store};

weir::library! {
    /// Products, carts and prices of a shop.
    pub(crate) shop: products, product, cart, currencies, convert, advertisement, recommendations, shipping, reserve, queries
}

/// A product.
#[derive(Clone, Debug, weir::Type)]
#[weir(name = "shop.Product")]
pub(crate) struct Product {
    /// The identity of the product.
    pub(crate) id: i64,
    /// The name.
    pub(crate) name: String,
    /// The price in cents of a euro.
    pub(crate) cents: i64,
}

/// A line of a cart.
#[derive(Clone, Debug, weir::Type)]
#[weir(name = "shop.Item")]
pub(crate) struct Item {
    /// The identity of the product.
    pub(crate) product: i64,
    /// The number of pieces.
    pub(crate) pieces: i64,
}

fn found(id: i64) -> Result<Product, Failure> {
    let found = usize::try_from(id).ok().and_then(|at| PRODUCTS.get(at));
    let (name, cents) = found.ok_or_else(|| Failure::function(format!("there is no product {id}")))?;
    Ok(Product { id, name: (*name).to_owned(), cents: *cents })
}

/// Returns all products.
#[weir::function(reads)]
pub(crate) async fn products(#[environment] store: &Store) -> Vec<Product> {
    store.query().await;
    (0..).zip(PRODUCTS).map(|(id, (name, cents))| Product { id, name: name.to_owned(), cents }).collect()
}

/// Returns a product.
#[weir::batched(at_most = 100, reads)]
pub(crate) async fn product(ids: &[i64], #[environment] store: &Store) -> Vec<Result<Product, Failure>> {
    store.query().await;
    ids.iter().map(|id| found(*id)).collect()
}

/// Returns the cart of a customer: as many different products as the customer's number, up to nine.
#[weir::function(reads)]
pub(crate) async fn cart(customer: u8, #[environment] store: &Store) -> Vec<Item> {
    store.query().await;
    (0..i64::from(customer.min(9))).map(|product| Item { product, pieces: 1 + product % 3 }).collect()
}

/// Returns the names of the currencies.
#[weir::function(reads)]
pub(crate) async fn currencies(#[environment] store: &Store) -> Vec<String> {
    store.query().await;
    CURRENCIES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Converts an amount in cents of a euro to hundredths of a currency.
#[weir::batched(at_most = 100, reads, each = "cents")]
pub(crate) async fn convert(
    cents: &[i64],
    currency: String,
    #[environment] store: &Store,
) -> Result<Vec<i64>, Failure> {
    store.query().await;
    let known = CURRENCIES.iter().find(|(name, _)| *name == currency);
    let (_, thousandths) = known.ok_or_else(|| Failure::function(format!("there is no currency {currency}")))?;
    Ok(cents.iter().map(|cents| cents * thousandths / 1_000).collect())
}

/// Returns an advertisement.
#[weir::function(reads)]
pub(crate) async fn advertisement(#[environment] store: &Store) -> String {
    store.query().await;
    "Mugs: two for the price of one".to_owned()
}

/// Returns up to five products that go with those of a cart.
#[weir::function(reads)]
pub(crate) async fn recommendations(items: Vec<Item>, #[environment] store: &Store) -> Vec<i64> {
    store.query().await;
    let in_cart = |id: &i64| items.iter().any(|item| item.product == *id);
    let others = (0..9i64).filter(|id| !in_cart(id));
    others.take(5).collect()
}

/// Returns the cost of shipping a cart, in cents of a euro.
#[weir::function(reads)]
pub(crate) async fn shipping(items: Vec<Item>, #[environment] store: &Store) -> i64 {
    store.query().await;
    let pieces: i64 = items.iter().map(|item| item.pieces).sum();
    390 + 25 * pieces
}

/// Takes a product out of the stock, if there is a piece left.
#[weir::batched(at_most = 100, each = "product")]
pub(crate) async fn reserve(products: &[i64], #[environment] store: &Store) -> Vec<bool> {
    store.query().await;
    let mut stock = store.stock();
    let mut take = |product: &i64| match stock.get_mut(product) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    };
    products.iter().map(&mut take).collect()
}

/// Returns the number of queries that the store has answered.
#[weir::function]
pub(crate) fn queries(#[environment] store: &Store) -> u64 {
    store.queries()
}
