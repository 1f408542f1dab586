package terraform

// Database is the id of the Firestore database that Terraform creates, unless its
// variable firestore_database names another one.
const Database = "affinity"

// KeysDatabase is that of the database of keys, unless firestore_keys_database names another one.
const KeysDatabase = "affinity-keys"
