package terraform

// Database is the id of the Firestore database that Terraform creates by default:
// the default of its variable firestore_database.
const Database = "affinity"
