package limit

const MaxAddresses = maxAddresses
