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

  static void all(ResultSet rs) throws SQLException {
    for (int n = rs.getMetaData().getColumnCount(); rs.next(); ) {
      Object[] row = new Object[n];
      for (int i = 0; i < n; i++) row[i] = rs.getObject(i + 1);
      say(row);
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
      for (ResultSet r = m.getCatalogs(); r.next(); ) say("catalog", r.getString(1));
      for (ResultSet r = m.getSchemas("lake", "jd%"); r.next(); ) say("schema", r.getString("TABLE_CATALOG"), r.getString("TABLE_SCHEM"));
      for (ResultSet r = m.getTables("lake", "jdbc", "%", new String[] {"TABLE"}); r.next(); ) say("table", r.getString("TABLE_SCHEM"), r.getString("TABLE_NAME"), r.getString("TABLE_TYPE"));
      for (ResultSet r = m.getColumns("lake", "jdbc", "t", "%"); r.next(); )
        say("column", r.getString("COLUMN_NAME"), r.getString("TYPE_NAME"), r.getInt("DATA_TYPE"), r.getString("COLUMN_SIZE"), r.getString("DECIMAL_DIGITS"), r.getString("IS_NULLABLE"));
      for (ResultSet r = m.getPrimaryKeys("lake", "jdbc", "t"); r.next(); ) say("key", r.getString("COLUMN_NAME"));
      for (ResultSet r = m.getTypeInfo(); r.next(); ) say("type", r.getString("TYPE_NAME"), r.getInt("DATA_TYPE"));
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
      try {
        c.setAutoCommit(false);
        say("autocommit", c.getAutoCommit());
      } catch (SQLException e) {
        say("transactions", e.getMessage().replace('\n', ' '));
      }
      all(s.executeQuery("SELECT 'still here'"));
    }
  }
}
