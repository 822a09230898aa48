import java.math.BigDecimal;
import java.sql.*;
import java.util.Properties;

/** What a JDBC tool does with the Arrow Flight SQL driver; each line of its output is a fact that the test looks at. */
public class FlightJdbc {
  static void say(Object... parts) {
    StringBuilder b = new StringBuilder();
    for (Object p : parts) b.append(b.length() == 0 ? "" : "|").append(p);
    System.out.println(b);
  }

  static void all(ResultSet open) throws SQLException {
    try (ResultSet rs = open) {
      for (int n = rs.getMetaData().getColumnCount(); rs.next(); ) {
        Object[] row = new Object[n];
        for (int i = 0; i < n; i++) row[i] = rs.getObject(i + 1);
        say(row);
      }
    }
  }

  static void each(String what, ResultSet open, String... columns) throws SQLException {
    try (ResultSet rs = open) {
      while (rs.next()) {
        Object[] row = new Object[columns.length + 1];
        row[0] = what;
        for (int i = 0; i < columns.length; i++) row[i + 1] = rs.getString(columns[i]);
        say(row);
      }
    }
  }

  public static void main(String[] args) throws Exception {
    Properties p = new Properties();
    for (int i = 1; i + 1 < args.length; i += 2) p.setProperty(args[i], args[i + 1]);
    try (Connection c = DriverManager.getConnection("jdbc:arrow-flight-sql://" + args[0], p); Statement s = c.createStatement()) {
      DatabaseMetaData m = c.getMetaData();
      say("product", m.getDatabaseProductName(), m.getIdentifierQuoteString(), m.supportsTransactions(), c.getAutoCommit());
      s.executeUpdate("CREATE TABLE lake.jdbc.t (id BIGINT NOT NULL, d DECIMAL(9,2), s VARCHAR, ts TIMESTAMP, day DATE)");
      say("inserted", s.executeUpdate("INSERT INTO lake.jdbc.t VALUES (1, 1.25, 'a', TIMESTAMP '2024-02-29 12:00:00', DATE '2024-02-29'), (2, NULL, NULL, NULL, NULL)"));
      each("catalog", m.getCatalogs(), "TABLE_CAT");
      each("schema", m.getSchemas("lake", "jd%"), "TABLE_CATALOG", "TABLE_SCHEM");
      each("table", m.getTables("lake", "jdbc", "%", new String[] {"TABLE"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE");
      each("column", m.getColumns("lake", "jdbc", "t", "%"), "COLUMN_NAME", "TYPE_NAME", "DATA_TYPE", "DECIMAL_DIGITS", "IS_NULLABLE");
      each("key", m.getPrimaryKeys("lake", "jdbc", "t"), "COLUMN_NAME");
      all(s.executeQuery("SELECT 'row', id, d, s, ts, day FROM lake.jdbc.t ORDER BY id"));
      try (PreparedStatement q = c.prepareStatement("SELECT 'found', s FROM lake.jdbc.t WHERE id = ?")) {
        say("parameters", q.getParameterMetaData().getParameterCount());
        q.setLong(1, 1);
        all(q.executeQuery());
      }
      try (PreparedStatement q = c.prepareStatement("INSERT INTO lake.jdbc.t (id, d, s) VALUES (?, ?, ?)")) {
        for (int i = 10; i < 13; i++) {
          q.setLong(1, i);
          q.setBigDecimal(2, new BigDecimal("2.50"));
          q.setString(3, i == 11 ? null : "it's " + i);
          q.addBatch();
        }
        int sum = 0;
        for (int n : q.executeBatch()) sum += n;
        say("batch", sum);
      }
      all(s.executeQuery("SELECT 'after', count(*), count(s), sum(d) FROM lake.jdbc.t"));
      long n = 0, sum = 0;
      try (ResultSet r = s.executeQuery("SELECT i, repeat('x', 100) AS s FROM range(300000) r(i)")) {
        for (; r.next(); n++) sum += r.getLong(1);
      }
      say("large", n, sum);
      try {
        s.executeQuery("SELECT * FROM lake.jdbc.nowhere");
      } catch (SQLException e) {
        say("error", e.getMessage().replace('\n', ' '));
      }
      c.setAutoCommit(false); // the driver keeps this to itself
      try {
        c.rollback();
        say("rollback", "done");
      } catch (SQLException e) {
        say("rollback", e.getMessage().replace('\n', ' '));
      }
      all(s.executeQuery("SELECT 'still here'"));
    }
  }
}
