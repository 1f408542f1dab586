package terraform

// Database is the id of the Firestore database that Terraform creates, unless its
// variable firestore_database names another one.
const Database = "affinity"
