CREATE TABLE warehouses (id INTEGER PRIMARY KEY, tax INTEGER NOT NULL);
CREATE TABLE districts (id INTEGER PRIMARY KEY, tax INTEGER NOT NULL, next_order INTEGER NOT NULL);
CREATE TABLE customers (district INTEGER, id INTEGER, discount INTEGER NOT NULL, PRIMARY KEY (district, id));
CREATE TABLE items (id INTEGER PRIMARY KEY, price INTEGER NOT NULL);
CREATE TABLE stocks (item INTEGER PRIMARY KEY, quantity INTEGER NOT NULL, ordered INTEGER NOT NULL, orders INTEGER NOT NULL);
CREATE TABLE orders (district INTEGER, id INTEGER, customer INTEGER NOT NULL, line_count INTEGER NOT NULL, PRIMARY KEY (district, id));
CREATE TABLE new_orders (district INTEGER, id INTEGER, PRIMARY KEY (district, id));
CREATE TABLE lines (district INTEGER, "order" INTEGER, number INTEGER, item INTEGER NOT NULL, quantity INTEGER NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (district, "order", number));
